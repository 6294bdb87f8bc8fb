//! Days, weeks and months of a time zone, as instants.
//!
//! The rules of a zone are data: a reader of a time zone database builds a [`Zone`] from them. All
//! instants are whole seconds since the Unix epoch, as in the database.

const DAY_S: i64 = 86_400;
/// No time zone ever had a larger offset from UTC.
const OFFSET_S_MOST: i64 = 26 * 3_600;

/// The offsets of a time zone from UTC, and the instants at which they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    name: &'static str,
    first_offset_s: i32,
    shifts: &'static [OffsetChange],
}

/// A change of a zone's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetChange {
    /// The instant of the change, in seconds since the epoch.
    pub from_s: i64,
    /// The offset of local time from UTC after the change.
    pub offset_s: i32,
}

/// A calendar unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first to the first.
    Month,
}

/// A calendar unit as a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarSpan {
    /// The first second.
    pub start_s: i64,
    /// The first second after the span.
    pub end_s: i64,
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: &'static Self = &Self { name: "UTC", first_offset_s: 0, shifts: &[] };

    /// Creates a zone. Its offset is `first_offset_s` before the first of `shifts`, which are in
    /// ascending order.
    pub const fn new(
        name: &'static str,
        first_offset_s: i32,
        shifts: &'static [OffsetChange],
    ) -> Self {
        Self { name, first_offset_s, shifts }
    }

    /// The name, such as `Europe/Berlin`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the day, week or month that contains `at_s`.
    ///
    /// A day begins with the first instant whose local date is that day or a later one. So a day
    /// that a zone skips is empty. An hour that a zone repeats around midnight belongs to the new
    /// day both times.
    pub fn span(&self, unit: CalendarUnit, at_s: i64) -> CalendarSpan {
        let mut first = unit.first_day(self.day(at_s));
        let mut start_s = self.day_start_s(first);
        loop {
            first = unit.next(first);
            let end_s = self.day_start_s(first);
            if at_s < end_s {
                return CalendarSpan { start_s, end_s };
            }
            start_s = end_s;
        }
    }

    /// The local date at an instant, in days since 1970-01-01.
    fn day(&self, at_s: i64) -> i64 {
        let offset_s = self.offset_s(self.shifts_until(at_s));
        (at_s + i64::from(offset_s)).div_euclid(DAY_S)
    }

    fn day_start_s(&self, day: i64) -> i64 {
        let midnight_s = day * DAY_S;
        // No earlier instant has this local date.
        let mut shift = self.shifts_until(midnight_s - OFFSET_S_MOST);
        loop {
            let from_s = shift.checked_sub(1).map_or(i64::MIN, |last| self.shifts[last].from_s);
            let start_s = from_s.max(midnight_s - i64::from(self.offset_s(shift)));
            match self.shifts.get(shift) {
                Some(next) if start_s >= next.from_s => shift += 1,
                _ => return start_s,
            }
        }
    }

    /// The number of changes up to an instant.
    fn shifts_until(&self, at_s: i64) -> usize {
        self.shifts.partition_point(|shift| shift.from_s <= at_s)
    }

    /// The offset after this number of changes.
    fn offset_s(&self, shifts: usize) -> i32 {
        shifts.checked_sub(1).map_or(self.first_offset_s, |last| self.shifts[last].offset_s)
    }
}

impl CalendarUnit {
    /// The name of the unit, as in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The length to show; for a month, that of the longest.
    pub const fn nominal_us(self) -> u64 {
        let days = match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
        };
        days * DAY_S as u64 * 1_000_000
    }

    /// The unit with this nominal length.
    pub(crate) fn of_nominal_us(us: u64) -> Option<Self> {
        [Self::Day, Self::Week, Self::Month].into_iter().find(|unit| unit.nominal_us() == us)
    }

    /// The first day of the unit that contains `day`.
    fn first_day(self, day: i64) -> i64 {
        match self {
            Self::Day => day,
            // 1970-01-01 was a Thursday.
            Self::Week => day - (day + 3).rem_euclid(7),
            Self::Month => {
                let (year, month) = month_of(day);
                first_of(year, month)
            }
        }
    }

    /// The first day of the unit after the one that begins with `first`.
    fn next(self, first: i64) -> i64 {
        match self {
            Self::Day => first + 1,
            Self::Week => first + 7,
            // The 32nd day of any month is in the next month.
            Self::Month => self.first_day(first + 31),
        }
    }
}

/// The days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// The days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar; `None` for an invalid
/// date.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let days = first_of(year, month) + day - 1;
    (day <= 28 || month_of(days) == (year, month)).then_some(days)
}

/// Returns the year and month (1 to 12) of a day. Years are counted from March, so that leap days
/// come last.
pub(crate) fn month_of(day: i64) -> (i64, i64) {
    let days = day + EPOCH_DAYS;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month)
}

/// The first day of a month.
fn first_of(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAYS
}

#[cfg(test)]
mod tests;
