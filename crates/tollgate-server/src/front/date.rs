//! The `Date` line of answers, written once a second on each thread.

use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, SystemTime};

/// `date: Sun, 06 Nov 1994 08:49:37 GMT` and its end.
const BYTES: usize = 37;

/// The last line, and the second for which it is right.
struct DateLine {
    second: u64,
    line: [u8; BYTES],
}

thread_local! {
    static LAST: RefCell<DateLine> =
        const { RefCell::new(DateLine { second: u64::MAX, line: [0; BYTES] }) };
}

/// Shows `see` the `Date` line at this instant, with its end.
#[inline]
pub(crate) fn with_line<T>(now_us: u64, use_line: impl FnOnce(&[u8]) -> T) -> T {
    LAST.with_borrow_mut(|last| {
        let second = now_us / 1_000_000;
        if last.second != second {
            last.write(second);
        }
        use_line(&last.line)
    })
}

impl DateLine {
    #[cold]
    fn write(&mut self, second: u64) {
        let instant = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        // A date always has the same length, so it fits.
        let _ = write!(&mut self.line[..], "date: {}\r\n", httpdate::HttpDate::from(instant));
        self.second = second;
    }
}

#[cfg(test)]
mod tests;
