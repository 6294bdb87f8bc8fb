//! `Retry-After` (RFC 9110, section 10.2.3).

use super::parse::{FieldError, FieldErrorKind, FieldInstant, digits_saturating, trim};
use super::profile::name;
use super::{MAX_FIELD_BYTES, US_PER_S};
use crate::calendar::{days_from_civil, month_of};

/// The delay of a refusal in whole seconds: rounded up, so that the client is not refused again,
/// and never zero.
pub const fn retry_after_seconds(retry_after_us: u64) -> u64 {
    let seconds = retry_after_us.div_ceil(US_PER_S);
    if seconds == 0 { 1 } else { seconds }
}

/// Reads both forms: a delay in seconds, and an HTTP-date in any of its three spellings. The date
/// of RFC 850 has a year of two digits, which `now_us` completes. Dates before 1970 read as 1970.
pub fn parse_retry_after(value: &str, now_us: u64) -> Result<FieldInstant, FieldError> {
    let error = |kind| FieldError { field: name::RETRY_AFTER, kind, at: 0 };
    if value.len() > MAX_FIELD_BYTES {
        return Err(error(FieldErrorKind::TooLong));
    }
    let value = trim(value);
    if let Some(seconds) = digits_saturating(value) {
        return Ok(FieldInstant::AfterUs(seconds.saturating_mul(US_PER_S)));
    }
    match parse_http_date(value, now_us / US_PER_S) {
        Some(at_s) => Ok(FieldInstant::AtUs(at_s.saturating_mul(US_PER_S))),
        None => Err(error(FieldErrorKind::NotADelayOrDate)),
    }
}

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const S_PER_DAY: u64 = 86_400;
/// Fifty years, with as many leap days as possible.
const FIFTY_YEARS_S: u64 = (50 * 365 + 13) * S_PER_DAY;

/// Returns the seconds since the Unix epoch; `None` if the text is not a date. The weekday need not
/// be right, since clients act on the instant.
fn parse_http_date(value: &str, now_s: u64) -> Option<u64> {
    let (day_name, rest) = value.split_once([',', ' '])?;
    if value.as_bytes().get(day_name.len()) == Some(&b' ') {
        short_day(day_name)?;
        return asctime(rest);
    }
    let rest = rest.strip_prefix(' ')?;
    if day_name.len() == 3 {
        short_day(day_name)?;
        imf_fixdate(rest)
    } else {
        DAYS.contains(&day_name).then_some(())?;
        rfc_850(rest, now_s)
    }
}

/// Parses `15 Nov 2026 12:00:00 GMT`, which follows the weekday.
fn imf_fixdate(rest: &str) -> Option<u64> {
    let (day, month, year, time) = four(rest, ' ')?;
    instant(number(year, 4)?, self::month(month)?, number(day, 2)?, time.strip_suffix(" GMT")?)
}

/// Parses `15-Nov-26 12:00:00 GMT`, which follows the weekday.
fn rfc_850(rest: &str, now_s: u64) -> Option<u64> {
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.splitn(3, '-');
    let day = number(parts.next()?, 2)?;
    let month = self::month(parts.next()?)?;
    let short_year = number(parts.next()?, 2)?;
    let time = time.strip_suffix(" GMT")?;
    let (year, _) = month_of((now_s / S_PER_DAY) as i64);
    let century = year as u64 / 100 * 100;
    // Takes the latest year with these two digits that is at most fifty years ahead.
    [century + 100, century, century - 100]
        .into_iter()
        .filter_map(|century| instant(century + short_year, month, day, time))
        .find(|&at_s| at_s <= now_s.saturating_add(FIFTY_YEARS_S))
}

/// Parses `Nov 15 12:00:00 2026`, which follows the weekday. A day of one digit follows two spaces.
fn asctime(rest: &str) -> Option<u64> {
    let (month, rest) = rest.split_once(' ')?;
    let (day, rest) = match rest.strip_prefix(' ') {
        Some(rest) => (number(rest.get(..1)?, 1)?, rest.get(1..)?),
        None => (number(rest.get(..2)?, 2)?, rest.get(2..)?),
    };
    let (time, year) = rest.strip_prefix(' ')?.split_once(' ')?;
    instant(number(year, 4)?, self::month(month)?, day, time)
}

fn instant(year: u64, month: u64, day: u64, time: &str) -> Option<u64> {
    let mut parts = time.splitn(3, ':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = number(parts.next()?, 2)?;
    // Second 60 is a leap second, which Unix time counts as the start of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_from_civil(year as i64, month as i64, day as i64)?;
    let seconds = |days| days * S_PER_DAY + hour * 3_600 + minute * 60 + second;
    Some(u64::try_from(days).map_or(0, seconds))
}

fn short_day(name: &str) -> Option<()> {
    (name.len() == 3 && DAYS.iter().any(|day| day.starts_with(name))).then_some(())
}

fn month(name: &str) -> Option<u64> {
    MONTHS.iter().position(|month| *month == name).map(|i| i as u64 + 1)
}

/// Parses exactly `width` digits.
fn number(digits: &str, width: usize) -> Option<u64> {
    (digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.bytes().fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0')))
}

fn four(text: &str, separator: char) -> Option<(&str, &str, &str, &str)> {
    let mut parts = text.splitn(4, separator);
    Some((parts.next()?, parts.next()?, parts.next()?, parts.next()?))
}
