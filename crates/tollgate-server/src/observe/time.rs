//! RFC 3339 times.

use jiff::Timestamp;

/// Microseconds since 1970 as RFC 3339 in UTC, such as `2026-11-15T12:07:26.000250Z`.
pub(crate) fn rfc3339(us: u64) -> String {
    let us = i64::try_from(us).unwrap_or(i64::MAX);
    format!("{:.6}", Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX))
}
