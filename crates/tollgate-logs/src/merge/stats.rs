//! Statistics of the logs, and of lines that could not be read.

use crate::entry::{BadLine, Entry, FIELDS, Field};
use std::path::{Path, PathBuf};

/// The most bad lines that are shown.
const SAMPLES: usize = 5;
/// A step of this size from one line to the next, back or ahead, counts as a jump of the clock.
const JUMP_BACK_US: u64 = 3_600_000_000;
const JUMP_AHEAD_US: u64 = 86_400_000_000;

/// Statistics of the logs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InputStats {
    /// The files, each with its format.
    pub files: Vec<(PathBuf, &'static str)>,
    /// Files without a line.
    pub empty: Vec<PathBuf>,
    /// All lines that are not empty.
    pub lines: u64,
    /// Lines with a request.
    pub requests: u64,
    /// Lines about connections without a request, and other messages.
    pub not_http: u64,
    /// Lines that cannot be read.
    pub unreadable: u64,
    /// The first unreadable lines: `FILE:LINE: reason`.
    pub samples: Vec<String>,
    /// Requests that came too late to be put in order.
    pub late: u64,
    /// The largest delay of a late request.
    pub late_us_max: u64,
    /// Lines at which the clock jumped: an hour back or a day ahead.
    pub jumps: u64,
    /// Files that could not be read to their end: `FILE: reason`.
    pub broken: Vec<String>,
    /// Requests whose line has a duration.
    pub with_duration: u64,
    /// The times of the first and the last request.
    pub span_us: Option<(u64, u64)>,
    /// The number of requests with each field.
    pub(crate) present: [u64; FIELDS],
    /// The number of requests with each attribute of the options.
    pub attributes: Vec<u64>,
}

impl InputStats {
    /// The number of requests with this field.
    pub fn present(&self, field: Field) -> u64 {
        self.present[field as usize]
    }

    /// Counts a request; `previous_us` is the time of the previous line.
    pub(crate) fn count(&mut self, entry: &Entry<'_>, previous_us: Option<u64>) {
        let time_us = entry.time_us;
        self.requests += 1;
        self.with_duration += u64::from(entry.duration_us.is_some());
        for (count, value) in self.present.iter_mut().zip(&entry.values) {
            *count += u64::from(!value.is_empty());
        }
        for (place, value) in &entry.attributes {
            self.attributes[*place] += u64::from(!value.is_empty());
        }
        let (first_us, last_us) = self.span_us.unwrap_or((time_us, time_us));
        self.span_us = Some((first_us.min(time_us), last_us.max(time_us)));
        let jumped = |previous_us: u64| {
            time_us.saturating_add(JUMP_BACK_US) < previous_us
                || time_us > previous_us.saturating_add(JUMP_AHEAD_US)
        };
        self.jumps += u64::from(previous_us.is_some_and(jumped));
    }

    /// Records a file that cannot be read to its end, once.
    pub(crate) fn broken(&mut self, path: &Path, why: &std::io::Error) {
        let broken = format!("{}: {why}; the rest was not read", path.display());
        if !self.broken.contains(&broken) {
            self.broken.push(broken);
        }
    }

    /// Records a file without a line of the requested format.
    pub(crate) fn wrong_format(&mut self, path: &Path, format: &str, line: u64, why: &BadLine) {
        self.broken.push(format!(
            "{}:{line}: this is not {format}, and neither is any other line: {why}; describe the lines with --log-format",
            path.display()
        ));
    }

    pub(crate) fn unreadable(&mut self, path: &Path, line: u64, why: impl std::fmt::Display) {
        self.unreadable += 1;
        if self.samples.len() < SAMPLES {
            self.samples.push(format!("{}:{line}: {why}", path.display()));
        }
    }
}
