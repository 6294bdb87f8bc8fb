//! Parses costs and instants from the digits of JSON numbers, never through a float: a double has
//! 53 bits, and represents few decimal fractions exactly.

use super::Fault;
use tollgate_core::MAX_US;

/// Limit of digits in a cost.
const COST_DIGITS_MAX: i64 = 20;

/// Parses a cost from a valid JSON number. JSON has one kind of number, so `1.0` and `1e0` are the
/// whole number 1. A fraction is an error.
pub(super) fn parse_cost(text: &str) -> Result<u64, Fault> {
    match text.strip_prefix('-') {
        None => parse_scaled(text, 0, COST_DIGITS_MAX).map_err(|_| Fault::NotAnInteger),
        Some(text) if parse_scaled(text, 0, COST_DIGITS_MAX) == Ok(0) => Ok(0),
        Some(_) => Err(Fault::Negative),
    }
}

/// The number of digits of [`MAX_US`].
const TIME_DIGITS_MAX: i64 = 16;

/// Parses a valid JSON number of seconds to microseconds. Accepts any spelling of a whole number of
/// microseconds in range.
pub(super) fn parse_us(text: &str) -> Result<u64, Fault> {
    if text.starts_with('-') {
        return Err(Fault::TimeNegative);
    }
    match parse_scaled(text, 6, TIME_DIGITS_MAX) {
        Ok(us) if us <= MAX_US => Ok(us),
        Ok(_) | Err(DecimalError::TooLarge) => Err(Fault::TimeTooLate),
        Err(DecimalError::TooFine) => Err(Fault::TimeTooFine),
    }
}

/// Limit of a reported latency: the lifetime of a reservation.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// Parses a valid JSON number of seconds to microseconds. Clients may measure more finely, so
/// digits beyond a microsecond are dropped.
pub(super) fn parse_latency_us(text: &str) -> Result<u64, Fault> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Fault::Latency);
    }
    let (mantissa, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
    let is_tiny = exponent.starts_with("e-") || exponent.starts_with("E-");
    let latency_us = match parse_scaled(text, 6, TIME_DIGITS_MAX) {
        Err(DecimalError::TooFine) if is_tiny => Ok(0),
        Err(DecimalError::TooFine) => {
            let point = mantissa.find('.').unwrap_or(mantissa.len());
            let end = (point + 7).min(mantissa.len());
            parse_scaled(&mantissa[..end], 6, TIME_DIGITS_MAX)
        }
        known => known,
    };
    latency_us.ok().filter(|us| *us <= LATENCY_US_MAX).ok_or(Fault::Latency)
}

/// The reason why a number is not a whole one in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecimalError {
    /// Too many digits before the point.
    TooLarge,
    /// Digits remain after the point.
    TooFine,
}

/// Computes `text x 10^places`, with at most `digits_max` digits. `text` is a valid JSON number
/// without a sign.
fn parse_scaled(text: &str, places: i64, digits_max: i64) -> Result<u64, DecimalError> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    // The value is `digits x 10^scale`; `digits` neither starts nor ends with a zero.
    let mut fraction = fraction.trim_end_matches('0');
    let mut whole = whole.trim_start_matches('0');
    let mut scale = exponent.saturating_add(places).saturating_sub(fraction.len() as i64);
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
    if scale.saturating_add(digits) > digits_max {
        return Err(DecimalError::TooLarge);
    }
    let scale = u32::try_from(scale).map_err(|_| DecimalError::TooFine)?;
    let significant = whole.bytes().chain(fraction.bytes()).try_fold(0, |value: u64, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))
    });
    significant
        .and_then(|significant| significant.checked_mul(10_u64.checked_pow(scale)?))
        .ok_or(DecimalError::TooLarge)
}

/// Parses an exponent, saturating.
fn parse_exponent(text: &str) -> i64 {
    text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests;
