//! `tollgate serve`.

mod hint;
mod signal;

use super::{FAILED, FILE, Stop, UNUSABLE, has_directory_entry, print};
use clap::ValueEnum;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tollgate_net::InheritedSockets;
use tollgate_observe::log::{self, LogLevel};
use tollgate_observe::otlp::{OtlpOptions, Signal};
use tollgate_observe::trace;
use tollgate_server::config::{Config, DEFAULT, ListenOverride};
use tollgate_server::serve::{RunningServer, Server, StartError};

/// Run the server
///
/// Runs the listeners of the file until a signal stops the process. When all of them listen,
/// standard error has a line for each, such as `listening http 127.0.0.1:8081`. The log also goes
/// to standard error.
///
/// The file is watched: a change takes effect within a moment and no request is lost. Counts are
/// kept, except for limits whose key, algorithm, period or time zone changes. A bad file changes
/// nothing; the log, /readyz and `tollgate_reload_total` report it. SIGHUP reloads the file.
/// SIGTERM and SIGINT let requests in flight finish within `drain`; a second signal exits at once.
///
/// A socket from systemd (LISTEN_FDS) goes to the listener with its name (LISTEN_FDNAMES) or its
/// address.
///
/// Traces and metrics go to an OpenTelemetry collector if OTEL_EXPORTER_OTLP_ENDPOINT names one
/// (http/protobuf). OTEL_TRACES_EXPORTER=none and OTEL_METRICS_EXPORTER=none turn them off.
/// OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and OTEL_METRIC_EXPORT_INTERVAL apply too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The policy; by default ./tollgate.yaml, or a built-in policy if that file does not exist
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Override the address of a front end; FRONT is http, gateway, grpc, resp or admin; port 0
    /// picks a free port; repeatable
    #[arg(long, value_name = "FRONT=ADDRESS")]
    listen: Vec<ListenOverride>,

    /// The minimum log level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "TOLLGATE_LOG", default_value = "info")]
    log: LogLevel,

    /// The format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Auto)]
    log_format: LogFormat,

    /// Print the built-in policy and exit
    #[arg(long)]
    print_default_config: bool,
}

const EXAMPLES: &str = "\
Examples:
  tollgate serve                                     ./tollgate.yaml, or a built-in policy
  tollgate serve --config /etc/tollgate/tollgate.yaml
  tollgate serve --listen http=0.0.0.0:8081
  tollgate serve --print-default-config > tollgate.yaml

Exit status: 0 stopped by a signal, 1 the file has errors, 2 it cannot start: the file
cannot be read, an address is taken, or the arguments are wrong.";

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// Text on a terminal, else JSON
    Auto,
    /// A line of text
    Text,
    /// A JSON object per line
    Json,
}

/// The time for exporting the last spans.
const TRACES_WITHIN: Duration = Duration::from_secs(2);

impl Serve {
    pub(crate) fn run(self) -> Result<ExitCode, Stop> {
        if self.print_default_config {
            return print(DEFAULT, 0);
        }
        // Must run before the first thread starts.
        let inherited = match InheritedSockets::from_env() {
            Ok(inherited) => inherited,
            Err(error) => return Ok(cannot_start(&StartError::Inherit(error))),
        };
        let _log = match log::start(self.log_format.into(), self.log) {
            Ok(log) => log,
            Err(error) => return Ok(cannot_start(&StartError::System(error))),
        };
        let served = self.serve(inherited);
        Ok(served.map_or_else(|error| cannot_start(&*error), |()| ExitCode::SUCCESS))
    }

    fn serve(&self, inherited: InheritedSockets) -> Result<(), Box<dyn Error>> {
        let read_otlp = |signal| OtlpOptions::read(signal, |name| std::env::var(name).ok());
        if let Some(options) = read_otlp(Signal::Traces)? {
            trace::start(&options)?;
        }
        let metrics = read_otlp(Signal::Metrics)?;
        // Must run before any listener starts, so that no signal is lost.
        let signals = signal::Signals::new().map_err(StartError::System)?;
        let config = self.config();
        let built_in = config.path().is_none();
        let mut running = Server::start_on(config, inherited)?;
        if let Some(options) = metrics {
            running.push_metrics(&options).map_err(StartError::System)?;
        }
        announce(&running, built_in);
        signals.serve(running);
        trace::stop(TRACES_WITHIN);
        Ok(())
    }

    fn config(&self) -> Config {
        let config = match &self.config {
            Some(path) => Config::file(path),
            None if has_directory_entry(Path::new(FILE)) => Config::file(FILE),
            None => Config::built_in(),
        };
        self.listen.iter().fold(config, |config, listen| config.listen(listen.clone()))
    }
}

/// Prints the error after the lines already logged, and returns the status.
fn cannot_start(error: &(dyn Error + 'static)) -> ExitCode {
    let (text, status) = match error.downcast_ref() {
        Some(StartError::Config(error)) if error.is_invalid() => (format!("{error}\n"), FAILED),
        _ => (format!("tollgate: {error}\n"), UNUSABLE),
    };
    log::print(&text);
    ExitCode::from(status)
}

/// Prints the address of each front end.
fn announce(running: &RunningServer, built_in: bool) {
    let mut text = String::new();
    for (front, address) in running.addresses() {
        text.push_str(&format!("listening {} {address}\n", front.name()));
    }
    if built_in {
        text.push_str(&hint::text(running.addresses()));
    }
    log::print(&text);
}

impl From<LogFormat> for log::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Auto => Self::Auto,
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}
