//! An instant from the digits of a JSON number. A double has 53 bits, and a decimal fraction of a second is rarely
//! one of its values: read through a float, two rows a microsecond apart could swap.

use super::Fault;
use tollgate_core::MAX_US;

/// How many digits [`MAX_US`] has.
const DIGITS_MAX: i64 = 16;

/// Microseconds from `text`, a JSON value that is well formed already: a number of seconds. Every number that is a whole count
/// of microseconds in range is accepted, however it is written.
pub(super) fn parse_us(text: &str) -> Result<u64, Fault> {
    match text.as_bytes().first() {
        Some(b'0'..=b'9') => {}
        Some(b'-') => return Err(Fault::TimeNegative),
        _ => return Err(Fault::TimeNotANumber),
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    // The value is `digits x 10^scale` microseconds, where `digits` neither starts nor ends with a zero.
    let mut fraction = fraction.trim_end_matches('0');
    let mut whole = whole.trim_start_matches('0');
    let mut scale = exponent.saturating_add(6).saturating_sub(fraction.len() as i64);
    if fraction.is_empty() {
        let zeros = whole.len();
        whole = whole.trim_end_matches('0');
        scale = scale.saturating_add((zeros - whole.len()) as i64);
    }
    if whole.is_empty() {
        fraction = fraction.trim_start_matches('0');
    }
    let digits = (whole.len() + fraction.len()) as i64;
    if digits == 0 {
        return Ok(0);
    }
    if scale.saturating_add(digits) > DIGITS_MAX {
        return Err(Fault::TimeTooLate);
    }
    if scale < 0 {
        return Err(Fault::TimeTooFine);
    }
    let significant = whole
        .bytes()
        .chain(fraction.bytes())
        .fold(0, |us: u64, digit| us * 10 + u64::from(digit - b'0'));
    let us = significant * 10_u64.pow(scale as u32);
    if us > MAX_US { Err(Fault::TimeTooLate) } else { Ok(us) }
}

/// An exponent; one that does not fit is as good as the largest that does.
fn parse_exponent(text: &str) -> i64 {
    text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
}
