//! Durations and sizes.

use super::Problem;
use crate::diagnostic::{codes, quoted};
use tollgate_core::CalendarUnit;
use tollgate_core::written_rate::{UNITS, calendar_unit, split_digits, unit_help, unit_us};

const MONTHS: &str = "months differ in length: write days, such as `30d`";

/// Parses a number and a unit into microseconds.
pub(crate) fn duration_us(text: &str) -> Result<u64, Problem> {
    let (count, unit) = split_digits(text);
    let bad = |message: String, help: String| Problem::new(codes::BAD_DURATION, message, help);
    if count.is_empty() {
        let help = "write a whole number and a unit, such as `30s`, `500ms` or `1h`".to_owned();
        return Err(bad(format!("{} is not a duration", quoted(text)), help));
    }
    if unit.is_empty() {
        let help = format!(
            "add a unit, such as `{}s` or `{}ms`",
            truncated_digits(count),
            truncated_digits(count)
        );
        return Err(bad(format!("{} has no unit", quoted(text)), help));
    }
    let Some(unit_us) = unit_us(unit) else {
        let is_month = calendar_unit(unit) == Some(CalendarUnit::Month);
        let help = if is_month { MONTHS.to_owned() } else { unit_help(unit) };
        return Err(bad(format!("{} ends in an unknown unit", quoted(text)), help));
    };
    let us = count.parse::<u64>().ok().and_then(|count| count.checked_mul(unit_us));
    us.filter(|us| *us <= tollgate_core::MAX_US).ok_or_else(|| {
        let help = "the longest duration is 285 years".to_owned();
        Problem::new(codes::OUT_OF_RANGE, format!("{} is too long", quoted(text)), help)
    })
}

/// Reads a duration as the file writes it, such as `30s`, into microseconds.
///
/// # Errors
///
/// Explains what is wrong with the text, and what to write instead.
pub fn parse_duration_us(text: &str) -> Result<u64, String> {
    duration_us(text).map_err(|problem| format!("{}; {}", problem.message, problem.help))
}

/// At most 12 digits, for a message.
fn truncated_digits(digits: &str) -> &str {
    digits.get(..12).unwrap_or(digits)
}

/// Formats a duration as the file writes it.
pub(crate) fn format_us(us: u64) -> String {
    for (names, unit_us) in UNITS.iter().rev().filter(|(names, _)| names[0] != "w") {
        if us >= *unit_us && us.is_multiple_of(*unit_us) {
            return format!("{}{}", us / unit_us, names[0]);
        }
    }
    format!("{}ms", us.div_ceil(1_000))
}

/// Parses a whole number from 0 to 100, and `%`.
pub(crate) fn percent(text: &str) -> Result<u8, Problem> {
    let bad = |help: String| {
        let message = format!("{} is not a percentage", quoted(text));
        Problem::new(codes::BAD_PERCENT, message, help)
    };
    let (digits, unit) = split_digits(text);
    match (digits.parse::<u8>(), unit.trim()) {
        (Ok(percent @ 0..=100), "%") => Ok(percent),
        (Ok(percent @ 0..=100), "") => Err(bad(format!("write `{percent}%`"))),
        _ => Err(bad("write a whole number from 0 to 100 and `%`, such as `20%`".to_owned())),
    }
}

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Parses a size: `64MiB`, `1GB`, `4096`.
pub(crate) fn size(text: &str) -> Result<u64, Problem> {
    let bad =
        |help: &str| Problem::new(codes::BAD_SIZE, format!("{} is not a size", quoted(text)), help);
    let (count, unit) = split_digits(text);
    let Some((_, factor)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
        let near = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        return Err(match near {
            Some((name, _)) => bad(&format!("write `{name}` for the unit")),
            None => bad("the units are B, KB, MB, GB, TB and KiB, MiB, GiB, TiB"),
        });
    };
    if count.is_empty() {
        return Err(bad("write a whole number and a unit, such as `64MiB`"));
    }
    count.parse::<u64>().ok().and_then(|count| count.checked_mul(*factor)).ok_or_else(|| {
        let message = format!("{} is too large", quoted(text));
        Problem::new(codes::OUT_OF_RANGE, message, "the largest size is 16 EiB")
    })
}

/// Parses a share, such as `1%`, `0.05%` or `100%`, into millionths. Zero is an error.
pub(crate) fn share_ppm(text: &str) -> Result<u32, Problem> {
    const PPM_PER_PERCENT: u32 = 10_000;
    let bad = || {
        let message = format!("{} is not a share", quoted(text));
        let help = "write a percentage above 0% and up to 100%, such as `1%` or `0.05%`";
        Problem::new(codes::BAD_SHARE, message, help)
    };
    let number = text.strip_suffix('%').ok_or_else(bad)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.len() > 3 || fraction.len() > 4 {
        return Err(bad());
    }
    let percent: u32 = whole.parse().map_err(|_| bad())?;
    let ppm: u32 = format!("{fraction:0<4}").parse().map_err(|_| bad())?;
    let ppm = percent * PPM_PER_PERCENT + ppm;
    if (1..=100 * PPM_PER_PERCENT).contains(&ppm) { Ok(ppm) } else { Err(bad()) }
}
