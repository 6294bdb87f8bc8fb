//! `100/min`, `5 / 10s`, `20`, `unlimited`; and a penalty's factor.

use super::quantity::{calendar_unit, unit_help, unit_us};
use super::{Problem, split_digits};
use crate::diagnostic::{codes, quoted};
use tollgate_core::CalendarUnit;

/// A rate as written; its numbers are not checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenRate {
    /// No limit at all.
    Unlimited,
    /// A bare number, for slots.
    Slots(u64),
    /// So many in so long.
    Per {
        /// How many units.
        count: u64,
        /// In how many microseconds; of months, which differ, in the longest.
        period_us: u64,
        /// The calendar unit that the period names: one day, one week or one month.
        unit: Option<CalendarUnit>,
    },
}

/// Reads a rate as the file writes it, such as `100/min`.
///
/// # Errors
///
/// When it is none: what is wrong with it, and what to write instead.
pub fn parse_rate(text: &str) -> Result<WrittenRate, String> {
    rate(text).map_err(|problem| format!("{}; {}", problem.message, problem.help))
}

/// N `/` [k]unit with one optional space on either side of the slash.
pub(crate) fn rate(text: &str) -> Result<WrittenRate, Problem> {
    let bad = |help: String| {
        Problem::new(codes::BAD_RATE, format!("{} is not a rate", quoted(text)), help)
    };
    if text == "unlimited" {
        return Ok(WrittenRate::Unlimited);
    }
    let (count, rest) = split_digits(text);
    if count.is_empty() {
        return Err(bad("write it as N/unit, such as `100/min`, or `unlimited`".to_owned()));
    }
    let count = parse_count(count)?;
    if rest.is_empty() {
        return Ok(WrittenRate::Slots(count));
    }
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let Some(rest) = rest.strip_prefix('/') else {
        let help = if rest.starts_with('.') {
            "N is a whole number: write `3/2s`, not `1.5/s`".to_owned()
        } else {
            format!("write it as N/unit, such as `{count}/min`")
        };
        return Err(bad(help));
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let (times, unit) = split_digits(rest);
    let calendar = calendar_unit(unit);
    let month = calendar.filter(|unit| *unit == CalendarUnit::Month);
    let Some(unit_us) = unit_us(unit).or(month.map(CalendarUnit::nominal_us)) else {
        let help = match unit {
            "" => "add a unit after the `/`".to_owned(),
            "mo" | "mon" | "mth" | "Month" | "MONTH" => "write `month` for the unit".to_owned(),
            _ => unit_help(unit).replace("w or week", "w or week, month"),
        };
        return Err(bad(help));
    };
    let times = if times.is_empty() { Some(1) } else { times.parse::<u64>().ok() };
    if month.is_some() && times != Some(1) {
        let help = format!("a window is one month: write `{count}/month`, or days: `{count}/90d`");
        return Err(bad(help));
    }
    let unit = calendar.filter(|_| times == Some(1));
    match times.and_then(|times| times.checked_mul(unit_us)) {
        Some(period_us) => Ok(WrittenRate::Per { count, period_us, unit }),
        None => Err(Problem::new(
            codes::PERIOD_OUT_OF_RANGE,
            format!("the period of {} is too long", quoted(text)),
            "a period is between 1ms and 366d",
        )),
    }
}

fn parse_count(digits: &str) -> Result<u64, Problem> {
    digits.parse().map_err(|_| {
        let message = format!("{} is too large", quoted(digits));
        Problem::new(codes::COUNT_TOO_LARGE, message, "the largest number is 4294967295")
    })
}

/// A decimal with up to three places, times 1,000.
pub(crate) fn factor_milli(text: &str) -> Result<u64, Problem> {
    let bad = || {
        let message = format!("{} is not a factor", quoted(text));
        let help = "write a number with at most three decimal places, such as `2` or `1.5`";
        Problem::new(codes::BAD_FACTOR, message, help)
    };
    let (whole, places) = match text.split_once('.') {
        Some((whole, places)) => (whole, places),
        None => (text, "0"),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (kept, rest) = places.split_at_checked(3).unwrap_or((places, ""));
    if !digits(whole) || !digits(places) || rest.bytes().any(|byte| byte != b'0') {
        return Err(bad());
    }
    let milli = format!("{kept:0<3}").parse::<u64>().map_err(|_| bad())?;
    let whole = whole.parse::<u64>().ok().filter(|whole| *whole <= 1_000_000);
    whole.map(|whole| whole * 1_000 + milli).ok_or_else(|| {
        let message = format!("the factor {} is too large", quoted(text));
        Problem::new(codes::OUT_OF_RANGE, message, "a factor is between 1 and 1000000")
    })
}
