//! RFC 3339 times.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Formats microseconds since 1970 as RFC 3339 in UTC, such as `2026-11-15T12:07:26.000250Z`.
pub fn rfc3339(us: u64) -> String {
    format!("{:.6}", timestamp(us))
}

/// Formats microseconds since 1970 as in Apache's logs, such as `15/Nov/2026:12:07:26 +0000`.
pub fn common_log_time(us: u64) -> String {
    timestamp(us).strftime("%d/%b/%Y:%H:%M:%S %z").to_string()
}

/// Parses a time with an offset, or a date in UTC, to microseconds since 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let date = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok();
    let time =
        if text.contains(['T', 't', ' ']) { text.parse().ok()? } else { date()?.timestamp() };
    u64::try_from(time.as_microsecond()).ok()
}

fn timestamp(us: u64) -> Timestamp {
    let us = i64::try_from(us).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX)
}
