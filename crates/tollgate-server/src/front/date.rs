//! The line of the date, written once a second.

use std::time::{Duration, SystemTime};

/// The last line, and the second for which it is right.
#[derive(Debug, Default)]
pub(super) struct DateLine {
    second: u64,
    line: Vec<u8>,
}

impl DateLine {
    /// `date: …` at this instant, with its end.
    pub(super) fn at(&mut self, now_us: u64) -> &[u8] {
        let second = now_us / 1_000_000;
        if self.second != second || self.line.is_empty() {
            self.second = second;
            let instant = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            self.line = format!("date: {}\r\n", httpdate::fmt_http_date(instant)).into_bytes();
        }
        &self.line
    }
}
