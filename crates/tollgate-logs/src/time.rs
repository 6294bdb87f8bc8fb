//! Converts timestamps to microseconds since 1970.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The last instant at which a limit can decide.
pub(crate) const MAX_US: u64 = (1 << 53) - 1;
const SECOND_US: u64 = 1_000_000;
const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// The form of timestamps in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// `14/Nov/2023:22:13:20 +0000`, or with milliseconds and without a zone.
    Clf,
    /// `2023-11-14T22:13:20.5Z`; the zone may be missing.
    Iso,
    /// Seconds since 1970, with decimals.
    Seconds,
    /// Any of these forms. A number is in seconds, milliseconds, microseconds or nanoseconds, by
    /// its size.
    Any,
}

/// The zone of timestamps without one; by default UTC.
#[derive(Clone, Debug, Default)]
pub struct LogZone(Option<TimeZone>);

impl LogZone {
    /// Finds a zone of the time zone database, such as `Europe/Berlin`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such zone.
    pub fn parse(name: &str) -> Result<Self, String> {
        match TimeZone::get(name) {
            Ok(zone) => Ok(Self(Some(zone))),
            Err(_) => Err(format!("there is no time zone {name:?}; write one as Europe/Berlin")),
        }
    }

    /// Converts a local time of this zone, given as if it were UTC, to UTC.
    fn to_utc(&self, local_us: u64) -> Option<u64> {
        let Some(zone) = &self.0 else { return Some(local_us) };
        let local = jiff::Timestamp::from_microsecond(i64::try_from(local_us).ok()?).ok()?;
        let local: DateTime = TimeZone::UTC.to_datetime(local);
        let instant = zone.to_ambiguous_timestamp(local).compatible().ok()?;
        u64::try_from(instant.as_microsecond()).ok()
    }
}

/// Converts a timestamp to an instant; `None` if it is invalid or out of range.
pub(crate) fn instant(form: TimeForm, stamp: &str, zone: &LogZone) -> Option<u64> {
    let stamp = stamp.trim();
    let time_us = match form {
        TimeForm::Clf => clf(stamp, zone),
        TimeForm::Iso => iso(stamp, zone),
        TimeForm::Seconds => decimal_us(stamp, 1_000_000_000),
        TimeForm::Any if stamp.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            let unit_ns = match stamp.split('.').next().unwrap_or_default().len() {
                ..=11 => 1_000_000_000,
                12..=14 => 1_000_000,
                15..=17 => 1_000,
                _ => 1,
            };
            decimal_us(stamp, unit_ns)
        }
        TimeForm::Any => iso(stamp, zone).or_else(|| clf(stamp, zone)),
    };
    time_us.filter(|time_us| *time_us <= MAX_US)
}

/// Parses `14/Nov/2023:22:13:20 +0000`.
fn clf(stamp: &str, zone: &LogZone) -> Option<u64> {
    let bytes = stamp.as_bytes();
    let (&[d1, d2, b'/', m1, m2, m3, b'/', y1, y2, y3, y4, b':'], rest) =
        bytes.split_first_chunk::<12>()?
    else {
        return None;
    };
    let month = MONTHS.chunks_exact(3).position(|month| month == [m1, m2, m3])? as u64 + 1;
    let days = days(digits(&[y1, y2, y3, y4])?, month, digits(&[d1, d2])?)?;
    let (of_day_us, rest) = time_of_day(rest)?;
    with_offset(days, of_day_us, rest.trim_ascii(), zone)
}

/// Parses `2023-11-14T22:13:20.5Z`.
fn iso(stamp: &str, zone: &LogZone) -> Option<u64> {
    let (date, rest) = stamp.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (of_day_us, rest) = time_of_day(rest.as_bytes())?;
    with_offset(iso_days(date.as_bytes())?, of_day_us, rest.trim_ascii(), zone)
}

/// Parses a day such as `2023-11-14`, and returns its start.
pub(crate) fn date_us(date: &str) -> Option<u64> {
    let days = u64::try_from(iso_days(date.as_bytes())?).ok()?;
    Some(days * 86_400 * SECOND_US)
}

/// Parses `22:13:20`, with or without decimals.
pub(crate) fn time_of_day_us(text: &str) -> Option<u64> {
    let (of_day_us, rest) = time_of_day(text.as_bytes())?;
    rest.is_empty().then_some(of_day_us)
}

/// Parses a number in units of `unit_ns`, rounded down to microseconds. It may have decimals and an
/// exponent, but must not be negative.
pub(crate) fn decimal_us(text: &str, unit_ns: u64) -> Option<u64> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = &decimals.as_bytes()[..decimals.len().min(18)];
    let all: u128 = (whole.len() <= 19 && whole.len() + decimals.len() > 0)
        .then(|| whole.bytes().chain(decimals.iter().copied()))?
        .try_fold(0_u128, |sum, byte| {
            byte.is_ascii_digit().then(|| 10 * sum + u128::from(byte - b'0'))
        })?;
    // The digits are a whole number of units times ten to the power of `shift`.
    let shift = exponent.checked_sub(decimals.len() as i32)?;
    let power = 10_u128.checked_pow(shift.unsigned_abs());
    let ns = match (shift < 0, power) {
        (true, Some(power)) => all.checked_mul(unit_ns.into())? / power,
        (true, None) => 0,
        (false, power) => all.checked_mul(unit_ns.into())?.checked_mul(power?)?,
    };
    u64::try_from(ns / 1_000).ok()
}

fn iso_days(date: &[u8]) -> Option<i64> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else { return None };
    days(digits(&[y1, y2, y3, y4])?, digits(&[m1, m2])?, digits(&[d1, d2])?)
}

/// Parses `22:13:20.5`, and returns the rest of the text.
fn time_of_day(text: &[u8]) -> Option<(u64, &[u8])> {
    let (&[h1, h2, b':', m1, m2, b':', s1, s2], mut rest) = text.split_first_chunk::<8>()? else {
        return None;
    };
    let (hours, minutes) = (digits(&[h1, h2])?, digits(&[m1, m2])?);
    let seconds = digits(&[s1, s2])?;
    // A leap second counts as the second after it.
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let mut us = ((hours * 60 + minutes) * 60 + seconds) * SECOND_US;
    if let [b'.' | b',', decimals @ ..] = rest {
        let len = decimals.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let places = decimals[..len].iter().chain(std::iter::repeat(&b'0')).take(6);
        us += places.fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0'));
        rest = &decimals[len..];
    }
    Some((us, rest))
}

/// Applies an offset: `Z`, `+0200`, `+02:00`, or none, in which case the time is in `zone`.
fn with_offset(days: i64, of_day_us: u64, offset: &[u8], zone: &LogZone) -> Option<u64> {
    let local_us = days.checked_mul(86_400 * SECOND_US as i64)?.checked_add(of_day_us as i64)?;
    let minutes = match *offset {
        [] => return zone.to_utc(u64::try_from(local_us).ok()?),
        [b'Z' | b'z'] | [b'U', b'T', b'C'] | [b'G', b'M', b'T'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] | [sign @ (b'+' | b'-'), h1, h2, m1, m2] => {
            let (hours, minutes) = (digits(&[h1, h2])?, digits(&[m1, m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = (hours * 60 + minutes) as i64;
            if sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    u64::try_from(local_us - minutes * 60 * SECOND_US as i64).ok()
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0')))
}

/// The days from 1970 to a civil date, computed by cycles of 400 years that start in March.
fn days(year: u64, month: u64, day: u64) -> Option<i64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > length {
        return None;
    }
    let year = year as i64 - i64::from(month <= 2);
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month as i64 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i64 - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    Some(cycle * 146_097 + day_of_cycle - 719_468)
}

#[cfg(test)]
mod tests;
