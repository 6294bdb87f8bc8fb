//! `Retry-After` (RFC 9110, section 10.2.3).

use super::http_date;
use super::parse::{FieldError, FieldErrorKind, FieldInstant, digits_saturating, trim};
use super::profile::name;
use super::{MAX_FIELD_BYTES, US_PER_S};

/// The delay to send for a refusal: whole seconds, rounded up so that the client is not refused
/// again, and never zero.
pub const fn retry_after_seconds(retry_after_us: u64) -> u64 {
    let seconds = retry_after_us.div_ceil(US_PER_S);
    if seconds == 0 { 1 } else { seconds }
}

/// Reads both forms: a delay in seconds, and an HTTP-date in any of its three spellings. The date
/// of RFC 850 has two digits for the year, which only `now_us` makes a year; dates before 1970 read
/// as 1970.
pub fn parse_retry_after(value: &str, now_us: u64) -> Result<FieldInstant, FieldError> {
    let error = |kind| FieldError { field: name::RETRY_AFTER, kind, at: 0 };
    if value.len() > MAX_FIELD_BYTES {
        return Err(error(FieldErrorKind::TooLong));
    }
    let value = trim(value);
    if let Some(seconds) = digits_saturating(value) {
        return Ok(FieldInstant::AfterUs(seconds.saturating_mul(US_PER_S)));
    }
    match http_date::parse(value, now_us / US_PER_S) {
        Some(at_s) => Ok(FieldInstant::AtUs(at_s.saturating_mul(US_PER_S))),
        None => Err(error(FieldErrorKind::NotADelayOrDate)),
    }
}
