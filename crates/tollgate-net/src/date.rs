//! The `Date` header line, written once a second on each thread.

use hyper::header::HeaderValue;
use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Length of `date: Sun, 06 Nov 1994 08:49:37 GMT` with its line end.
const BYTES: usize = 37;
/// The range of the date in the line.
const VALUE: Range<usize> = 6..BYTES - 2;

/// The last second of the year 9999: the format has four digits for the year.
const SECOND_MAX: u64 = 253_402_300_799;

/// The last line, and the second that it shows.
struct DateLine {
    second: u64,
    line: [u8; BYTES],
}

thread_local! {
    static LAST: RefCell<DateLine> =
        const { RefCell::new(DateLine { second: u64::MAX, line: [0; BYTES] }) };
}

/// Calls `use_line` with the `Date` line of this instant, line end included.
#[inline]
pub(crate) fn with_line<T>(now_us: u64, use_line: impl FnOnce(&[u8]) -> T) -> T {
    LAST.with_borrow_mut(|last| {
        let second = (now_us / 1_000_000).min(SECOND_MAX);
        if last.second != second {
            last.write(second);
        }
        use_line(&last.line)
    })
}

/// The value of `Date` at this instant.
pub(crate) fn value(now_us: u64) -> HeaderValue {
    let read = |line: &[u8]| HeaderValue::from_bytes(&line[VALUE]);
    // A date is always a valid header value.
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
