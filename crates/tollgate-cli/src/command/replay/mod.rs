//! `tollgate replay`: what a policy would have done to the requests of access logs.

mod html;
mod json;
mod report;
mod rows;
mod run;
mod table;
mod tally;
mod unmatched;

pub(crate) use json::input as input_json;
pub(crate) use report::ReplayReport;
pub(crate) use rows::{more_keys, percent};
pub(crate) use run::{Decider, replay};

use super::lab::{self, LogArguments, OutputForm, Progress, file_name, unwritable};
use super::{Stop, print};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show what a policy would have done to the requests of access logs
///
/// Reads the logs of nginx, Apache, Caddy, Envoy, HAProxy, Traefik, AWS ALB and CloudFront as they
/// are, and CSV with named columns; plain or gzip. Several files are merged by time. Prints what
/// each limit would have admitted and refused, and which keys it would have refused. Refusals are
/// not errors: the status is 2 if a file cannot be read to its end, else 0.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// The logs; `-` reads standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    /// The policy; by default ./tollgate.yaml. State is kept in memory, whatever the store in the
    /// file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    reading: LogArguments,

    /// The number of keys to name for each limit, the most refused first
    #[arg(long, value_name = "N", default_value_t = 10)]
    keys: usize,

    /// Draw admitted and refused requests over time, by limit
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Write a self-contained report with the picture
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

impl Replay {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let config = lab::config(self.config.as_deref())?;
        let loaded = lab::load(config, true)?;
        let mut progress = Progress::start(self.quiet);
        let is_drawn = self.plot.is_some() || self.report.is_some();
        let done = replay(&loaded, &self.logs, &self.reading, is_drawn, &mut progress);
        progress.clear();
        let done = done?;
        let report = done.report(config, self.keys);
        let logs = match &self.logs[..] {
            [log] => file_name(log),
            logs => format!("{} logs", logs.len()),
        };
        let title = format!("{logs}, decided by {}", file_name(config));
        if is_drawn {
            let svg = done.plot().svg(&title);
            if let Some(path) = &self.report {
                let page = html::page(&title, &report, &svg);
                std::fs::write(path, page).map_err(|error| unwritable(path, &error))?;
            }
            if let Some(path) = &self.plot {
                std::fs::write(path, svg).map_err(|error| unwritable(path, &error))?;
            }
        }
        let text = match self.reading.output() {
            OutputForm::Table => table::text(&report),
            OutputForm::Json => format!("{:#}\n", json::value(&report)),
        };
        print(text, lab::input_status(&report.input, 0))
    }
}
