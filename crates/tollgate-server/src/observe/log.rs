//! Log to standard error: text on a terminal, otherwise a JSON object for each line.
//!
//! A line reports a change of state, such as a reload or a lost store. Events of single requests
//! belong in metrics and traces. Types that hold a secret do not print it.

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::io::{self, IsTerminal};
use std::str::FromStr;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// The format of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text when standard error is a terminal, else JSON.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The minimum level of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLevel(Level);

/// The text is not a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidLogLevel;

/// Writes the process's log to standard error from now on. A second call changes nothing.
pub fn start(format: LogFormat, severity: LogLevel) {
    let format = match format {
        LogFormat::Auto if io::stderr().is_terminal() => LogFormat::Text,
        LogFormat::Auto => LogFormat::Json,
        chosen => chosen,
    };
    // It fails if there is a log already, which stays.
    let _ = tracing::subscriber::set_global_default(subscriber(format, severity, io::stderr));
}

/// A log to `writer`.
fn subscriber<W>(
    format: LogFormat,
    severity: LogLevel,
    writer: W,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let log = tracing_subscriber::fmt().with_max_level(severity.0).with_writer(writer);
    let filter = targets(severity);
    match format {
        LogFormat::Json => {
            Box::new(log.json().flatten_event(true).with_target(false).finish().with(filter))
        }
        LogFormat::Text | LogFormat::Auto => {
            Box::new(log.with_ansi(false).with_target(false).finish().with(filter))
        }
    }
}

/// Libraries log errors only, unless the level is `debug` or `trace`: clients could fill the log
/// through them.
fn targets(severity: LogLevel) -> Targets {
    let theirs = match severity.0 {
        Level::DEBUG | Level::TRACE => severity.0,
        _ => Level::ERROR,
    };
    Targets::new().with_target("tollgate", severity.0).with_default(theirs)
}

impl Default for LogLevel {
    fn default() -> Self {
        Self(Level::INFO)
    }
}

impl FromStr for LogLevel {
    type Err = InvalidLogLevel;

    fn from_str(text: &str) -> Result<Self, InvalidLogLevel> {
        let known = ["error", "warn", "info", "debug", "trace"].contains(&text);
        let level = text.parse().ok().filter(|_| known);
        level.map(Self).ok_or(InvalidLogLevel)
    }
}

impl fmt::Display for InvalidLogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a level; write `error`, `warn`, `info`, `debug` or `trace`")
    }
}

impl std::error::Error for InvalidLogLevel {}
