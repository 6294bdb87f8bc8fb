//! The positions and labels of marks on an axis.

/// The units in which a span of time is shown, each with suitable steps between marks.
const UNITS: [(u64, &str, &[u64]); 7] = [
    (1, "µs", &[1, 2, 5, 10, 20, 50, 100, 200, 500]),
    (1_000, "ms", &[1, 2, 5, 10, 20, 50, 100, 200, 500]),
    (1_000_000, "s", &[1, 2, 5, 10, 15, 20, 30]),
    (60_000_000, "min", &[1, 2, 5, 10, 15, 20, 30]),
    (3_600_000_000, "h", &[1, 2, 3, 6, 12]),
    (86_400_000_000, "d", &[1, 2, 5, 7, 14, 30, 60, 90, 180, 365]),
    (365 * 86_400_000_000, "a", &[1, 2, 5, 10, 20, 50, 100]),
];

/// The most marks on the time axis.
const TIME_MARKS_MAX: u64 = 12;

/// The marks of the time axis: the distance from its start, and the label.
pub fn time_ticks(span_us: u64) -> Vec<(u64, String)> {
    let steps = UNITS.iter().flat_map(|&(unit_us, unit, steps)| {
        steps.iter().map(move |step| (step * unit_us, unit_us, unit))
    });
    let (step_us, unit_us, unit) = steps
        .into_iter()
        .find(|(step_us, ..)| span_us / step_us <= TIME_MARKS_MAX)
        .unwrap_or((span_us.max(1), 1, "µs"));
    (0..=span_us / step_us)
        .map(|mark| (mark * step_us, format!("{} {unit}", mark * step_us / unit_us)))
        .collect()
}

/// Formats a duration in its largest whole unit, such as `100 ms`.
pub fn format_duration(us: u64) -> String {
    let (unit_us, unit, _) = UNITS
        .iter()
        .rev()
        .find(|(unit_us, ..)| us >= *unit_us && us.is_multiple_of(*unit_us))
        .unwrap_or(&UNITS[0]);
    format!("{} {unit}", us / unit_us)
}

/// Formats the time since the start of a run, such as `2 min 30.5 s`.
pub fn format_offset(us: u64) -> String {
    let mut parts = Vec::new();
    let mut rest_us = us;
    for (unit_us, unit) in [(86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min")] {
        if rest_us >= unit_us {
            parts.push(format!("{} {unit}", rest_us / unit_us));
            rest_us %= unit_us;
        }
    }
    if rest_us > 0 || parts.is_empty() {
        let decimals = format!("{}.{:06}", rest_us / 1_000_000, rest_us % 1_000_000);
        parts.push(format!("{} s", decimals.trim_end_matches('0').trim_end_matches('.')));
    }
    parts.join(" ")
}

/// Returns the top of an axis of counts, at least `max`, and the step between its marks. Both are
/// whole numbers that are easy to read and to halve.
pub fn count_ticks(max: u64) -> (u64, u64) {
    let mut unit: u64 = 1;
    loop {
        for step in [unit, 2 * unit, 5 * unit] {
            if max <= step.saturating_mul(4) {
                return (max.div_ceil(step).max(1) * step, step);
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Formats a count with separators between thousands.
pub fn format_grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 request`, `2,000 requests`.
pub fn format_count(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", format_grouped(count))
}

/// Formats an instant in UTC, to the second. The date is computed by cycles of 400 years that start
/// in March.
pub fn format_utc(us: u64) -> String {
    let seconds = us / 1_000_000;
    let days = seconds / 86_400 + 719_468;
    let (cycle, day_of_cycle) = (days / 146_097, days % 146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
        - day_of_cycle / 146_096)
        / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = cycle * 400 + year_of_cycle + u64::from(month <= 2);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests;
