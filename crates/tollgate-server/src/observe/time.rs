//! RFC 3339 times.

const DAY_S: u64 = 86_400;
/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const BEFORE_1970: u64 = 719_468;

/// Microseconds since 1970 as RFC 3339 in UTC, such as `2026-11-15T12:07:26.000250Z`.
pub(crate) fn rfc3339(us: u64) -> String {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let (year, month, day) = date(seconds / DAY_S);
    let of_day = seconds % DAY_S;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
}

/// Year, month and day, `days` after 1970. Years start in March, so that a leap day is their last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + BEFORE_1970;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}
