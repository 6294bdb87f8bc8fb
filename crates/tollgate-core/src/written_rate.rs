//! Rates and time units as people write them: `100/min`, `5 / 10s`, `20`, `unlimited`.

use crate::CalendarUnit;
use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;

/// A rate as written, before its numbers are checked.
///
/// ```
/// use tollgate_core::written_rate::WrittenRate;
///
/// let rate = WrittenRate::parse("5/250ms");
/// assert_eq!(rate, Ok(WrittenRate::Per { count: 5, period_us: 250_000, unit: None }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenRate {
    /// No limit.
    Unlimited,
    /// A bare number, for slots.
    Slots(u64),
    /// A count per period.
    Per {
        /// The count, in units.
        count: u64,
        /// The period in microseconds; for months, that of the longest.
        period_us: u64,
        /// The calendar unit of the period: one day, one week or one month.
        unit: Option<CalendarUnit>,
    },
}

/// Why a text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidWrittenRate {
    /// The text has another form. The value says what to write instead.
    NotARate(Cow<'static, str>),
    /// The number has more than 64 bits.
    CountTooLarge,
    /// The period has more microseconds than 64 bits can count.
    PeriodTooLong,
}

impl WrittenRate {
    /// Parses `N/[k]unit`, with one optional space on either side of the slash.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a rate.
    pub fn parse(text: &str) -> Result<Self, InvalidWrittenRate> {
        let bad = |help: String| Err(InvalidWrittenRate::NotARate(help.into()));
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let (count, rest) = split_digits(text);
        if count.is_empty() {
            return bad("write it as N/unit, such as `100/min`, or `unlimited`".to_owned());
        }
        let count = count.parse().map_err(|_| InvalidWrittenRate::CountTooLarge)?;
        if rest.is_empty() {
            return Ok(Self::Slots(count));
        }
        let Some(rest) = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('/') else {
            return bad(number_help(text, count));
        };
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        let (times, unit) = split_digits(rest);
        let calendar = calendar_unit(unit);
        let month = calendar.filter(|unit| *unit == CalendarUnit::Month);
        let Some(unit_us) = unit_us(unit).or(month.map(CalendarUnit::nominal_us)) else {
            return bad(match unit {
                "" => "add a unit after the `/`".to_owned(),
                "mo" | "mon" | "mth" | "Month" | "MONTH" => "write `month` for the unit".to_owned(),
                _ => unit_help(unit).replace("w or week", "w or week, month"),
            });
        };
        let times = if times.is_empty() { Some(1) } else { times.parse::<u64>().ok() };
        if month.is_some() && times != Some(1) {
            return bad(format!(
                "a window is one month: write `{count}/month`, or days: `{count}/90d`"
            ));
        }
        let unit = calendar.filter(|_| times == Some(1));
        let period_us = times.and_then(|times| times.checked_mul(unit_us));
        let period_us = period_us.ok_or(InvalidWrittenRate::PeriodTooLong)?;
        Ok(Self::Per { count, period_us, unit })
    }
}

/// Explains what to write instead of a number that goes on after the digits of `count`.
fn number_help(text: &str, count: u64) -> String {
    let Some((number, unit)) = text.split_once('/') else {
        return format!("write it as N/unit, such as `{count}/min`");
    };
    let digits: String = number.chars().filter(|c| !matches!(c, ',' | '_' | '\'' | ' ')).collect();
    match split_digits(&digits) {
        (all, "") => format!("N has digits only: write `{all}/{unit}`"),
        (_, rest) if rest.starts_with('.') => {
            "N is a whole number: write `3/2s`, not `1.5/s`".to_owned()
        }
        _ => "N has digits only, such as `5000/min`".to_owned(),
    }
}

/// The names of each unit, and its length in microseconds.
pub const UNITS: &[(&[&str], u64)] = &[
    (&["ms"], 1_000),
    (&["s", "sec", "secs"], 1_000_000),
    (&["m", "min", "mins"], 60_000_000),
    (&["h", "hour", "hours"], 3_600_000_000),
    (&["d", "day", "days"], 86_400_000_000),
    (&["w", "week", "weeks"], 604_800_000_000),
];

/// Common words for units, and the words to write instead.
const NEARLY: &[(&str, &str)] = &[
    ("second", "sec"),
    ("seconds", "secs"),
    ("minute", "min"),
    ("minutes", "mins"),
    ("hr", "h"),
    ("hrs", "h"),
    ("msec", "ms"),
    ("millisecond", "ms"),
    ("milliseconds", "ms"),
];

/// The length of a unit, in microseconds.
pub fn unit_us(unit: &str) -> Option<u64> {
    UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, us)| *us)
}

/// The calendar unit that a word means in a rate.
pub fn calendar_unit(unit: &str) -> Option<CalendarUnit> {
    match unit {
        "d" | "day" | "days" => Some(CalendarUnit::Day),
        "w" | "week" | "weeks" => Some(CalendarUnit::Week),
        "month" | "months" => Some(CalendarUnit::Month),
        _ => None,
    }
}

/// Explains what to write instead of an unknown unit.
pub fn unit_help(unit: &str) -> String {
    let lower = unit.to_lowercase();
    let near = NEARLY.iter().find(|(name, _)| *name == lower).map(|(_, ours)| *ours);
    match near.or_else(|| unit_us(&lower).map(|_| lower.as_str())) {
        Some(ours) => format!("write `{ours}` for the unit"),
        None => "the units are ms, s or sec, m or min, h or hour, d or day, w or week".to_owned(),
    }
}

/// Splits `123abc` after its digits.
pub fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}
