//! An instant from the digits of a JSON number: read through a float, two rows a microsecond apart
//! could swap.

use super::Fault;
use super::decimal::{DecimalError, parse_scaled};
use tollgate_core::MAX_US;

/// How many digits [`MAX_US`] has.
const DIGITS_MAX: i64 = 16;

/// Microseconds from `text`, a JSON value that is well formed already: a number of seconds. Every
/// number that is a whole count of microseconds in range is accepted, however it is written.
pub(super) fn parse_us(text: &str) -> Result<u64, Fault> {
    match text.as_bytes().first() {
        Some(b'0'..=b'9') => {}
        Some(b'-') => return Err(Fault::TimeNegative),
        _ => return Err(Fault::TimeNotANumber),
    }
    match parse_scaled(text, 6, DIGITS_MAX) {
        Ok(us) if us <= MAX_US => Ok(us),
        Ok(_) | Err(DecimalError::TooLarge) => Err(Fault::TimeTooLate),
        Err(DecimalError::TooFine) => Err(Fault::TimeTooFine),
    }
}
