//! Progress and summary of a run, on standard error. Progress appears on a terminal only.

use super::tally::Tally;
use std::io::{self, IsTerminal, Write};
use tollgate_store::ProcessClock;

/// Between two looks.
const EVERY_US: u64 = 200_000;

/// Shows the rows answered so far.
pub(super) struct Progress {
    /// Whether standard error is a terminal.
    watched: bool,
    quiet: bool,
    start_us: u64,
    shown_us: u64,
}

impl Progress {
    pub(super) fn start(quiet: bool) -> Self {
        let now_us = ProcessClock.now_us();
        let watched = !quiet && io::stderr().is_terminal();
        Self { watched, quiet, start_us: now_us, shown_us: now_us }
    }

    /// Shows the count, if it is time to.
    pub(super) fn show(&mut self, tally: &Tally<'_>) {
        let now_us = ProcessClock.now_us();
        if self.watched && now_us - self.shown_us >= EVERY_US {
            self.shown_us = now_us;
            self.write(&format!("\r\x1b[K{}", self.line(tally, now_us)));
        }
    }

    /// Makes room for something else to say.
    pub(super) fn clear(&self) {
        if self.watched {
            self.write("\r\x1b[K");
        }
    }

    /// Shows the summary.
    pub(super) fn finish(&self, tally: &Tally<'_>) {
        if !self.quiet {
            self.clear();
            self.write(&format!("{}\n{tally}", self.line(tally, ProcessClock.now_us())));
        }
    }

    fn line(&self, tally: &Tally<'_>, now_us: u64) -> String {
        let elapsed_us = (now_us - self.start_us).max(1);
        let per_s = u128::from(tally.rows) * 1_000_000 / u128::from(elapsed_us);
        format!("{} rows, {per_s} rows/s", tally.rows)
    }

    /// Progress that cannot be shown is no reason to stop.
    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

#[cfg(test)]
mod tests;
