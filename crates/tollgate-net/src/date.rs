//! The `Date` line of answers, written once a second on each thread.

use hyper::header::HeaderValue;
use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// `date: Sun, 06 Nov 1994 08:49:37 GMT` and its end.
const BYTES: usize = 37;
/// The date in it.
const VALUE: Range<usize> = 6..BYTES - 2;

/// The last second of the year 9999: a date has four digits for its year.
const SECOND_MAX: u64 = 253_402_300_799;

/// The last line, and the second for which it is right.
struct DateLine {
    second: u64,
    line: [u8; BYTES],
}

thread_local! {
    static LAST: RefCell<DateLine> =
        const { RefCell::new(DateLine { second: u64::MAX, line: [0; BYTES] }) };
}

/// Shows `use_line` the `Date` line at this instant, with its end.
#[inline]
pub fn with_line<T>(now_us: u64, use_line: impl FnOnce(&[u8]) -> T) -> T {
    LAST.with_borrow_mut(|last| {
        let second = (now_us / 1_000_000).min(SECOND_MAX);
        if last.second != second {
            last.write(second);
        }
        use_line(&last.line)
    })
}

/// The value of `Date` at this instant.
pub fn value(now_us: u64) -> HeaderValue {
    let read = |line: &[u8]| HeaderValue::from_bytes(&line[VALUE]);
    // A date is always a valid value.
    with_line(now_us, read).unwrap_or(HeaderValue::from_static(""))
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
