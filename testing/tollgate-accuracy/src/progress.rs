//! Progress on standard error: on a terminal a line that is overwritten, otherwise a line for each
//! tenth.

use std::io::{IsTerminal, Write, stderr};
use tollgate_picture::axis::format_grouped;

pub(crate) struct Progress {
    sources: u64,
    is_watched: bool,
    /// The progress shown last: in thousandths, or for a log in millions of requests.
    shown: u64,
}

impl Progress {
    /// Creates progress for a number of sources; zero if it is unknown.
    pub(crate) fn new(sources: u64) -> Self {
        Self { sources, is_watched: stderr().is_terminal(), shown: 0 }
    }

    pub(crate) fn show(&mut self, sources: u64, requests: u64) {
        let done = match self.sources {
            0 => requests / 1_000_000,
            all => sources * 1_000 / all,
        };
        let step = if self.is_watched || self.sources == 0 { 1 } else { 100 };
        if done < self.shown + step {
            return;
        }
        self.shown = done;
        let (before, after) = if self.is_watched { ("\r\x1b[K", "") } else { ("", "\n") };
        let share = match self.sources {
            0 => String::new(),
            _ => format!("{} %, ", done / 10),
        };
        let (sources, requests) = (format_grouped(sources), format_grouped(requests));
        let end = if self.is_watched && done == 1_000 { "\n" } else { after };
        eprint!("{before}{share}{sources} sources, {requests} requests{end}");
        // A write error must not stop the run.
        let _ = stderr().flush();
    }
}
