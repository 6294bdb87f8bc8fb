//! Progress and summary of a run, on standard error. Progress appears on a terminal only.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use tollgate_store::ProcessClock;

/// The time between two updates.
const EVERY_US: u64 = 200_000;

/// Shows the number of rows decided so far.
pub(crate) struct Progress {
    /// Whether standard error is a terminal.
    watched: bool,
    quiet: bool,
    start_us: u64,
    shown_us: u64,
}

impl Progress {
    pub(crate) fn start(quiet: bool) -> Self {
        let now_us = ProcessClock.now_us();
        let watched = !quiet && io::stderr().is_terminal();
        Self { watched, quiet, start_us: now_us, shown_us: now_us }
    }

    /// Shows the count and the remaining time, if an update is due. `done` has the bytes read and
    /// the bytes in total; the size of a pipe is unknown.
    pub(crate) fn show(&mut self, rows: u64, done: Option<(u64, u64)>) {
        let now_us = ProcessClock.now_us();
        if self.watched && now_us - self.shown_us >= EVERY_US {
            self.shown_us = now_us;
            let left = done.and_then(|done| remaining(now_us - self.start_us, done));
            let left = left.unwrap_or_default();
            self.write(&format!("\r\x1b[K{}{left}", self.line(rows, now_us)));
        }
    }

    /// Clears the line, so that other text can be printed.
    pub(crate) fn clear(&self) {
        if self.watched {
            self.write("\r\x1b[K");
        }
    }

    /// Shows the summary.
    pub(crate) fn finish(&self, rows: u64, summary: impl Display) {
        if !self.quiet {
            self.clear();
            self.write(&format!("{}\n{summary}", self.line(rows, ProcessClock.now_us())));
        }
    }

    fn line(&self, rows: u64, now_us: u64) -> String {
        let elapsed_us = (now_us - self.start_us).max(1);
        let per_s = u128::from(rows) * 1_000_000 / u128::from(elapsed_us);
        format!("{rows} rows, {per_s} rows/s")
    }

    /// Writes to standard error, and ignores errors: they must not end the run.
    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// The percentage done, and the remaining time.
fn remaining(elapsed_us: u64, (done, all): (u64, u64)) -> Option<String> {
    let percent = done.min(all).checked_mul(100)?.checked_div(all)?;
    let left_us = u128::from(elapsed_us) * u128::from(all.saturating_sub(done));
    let left_s = u64::try_from(left_us.checked_div(done.into())? / 1_000_000).ok()?;
    Some(format!(", {percent} %, {}:{:02} left", left_s / 60, left_s % 60))
}

#[cfg(test)]
mod tests;
