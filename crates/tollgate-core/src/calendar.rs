//! Days, weeks and months of a time zone, as instants.
//!
//! The rules of a zone are data: a reader of a time zone database makes a [`Zone`] of them.
//! All instants are whole seconds since the Unix epoch, as in the database.

const DAY_S: i64 = 86_400;
/// No zone was ever further from UTC.
const OFFSET_S_MOST: i64 = 26 * 3_600;

/// The offsets of a time zone from UTC, and when they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    name: &'static str,
    first_offset_s: i32,
    shifts: &'static [OffsetChange],
}

/// From an instant on, local time is this far ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetChange {
    /// The instant, in seconds since the epoch.
    pub from_s: i64,
    /// How far local time is ahead of UTC.
    pub offset_s: i32,
}

/// A unit of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first to the first.
    Month,
}

/// From the first instant of a unit of the calendar up to the first of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarSpan {
    /// Its first second.
    pub start_s: i64,
    /// The first second after it.
    pub end_s: i64,
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: &'static Self = &Self { name: "UTC", first_offset_s: 0, shifts: &[] };

    /// A zone whose offset is `first_offset_s` before the first of `shifts`. Shifts are in
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

    /// The day, week or month in which `at_s` lies.
    ///
    /// A day begins with the first instant whose local date is that day or a later one. So a day
    /// that a zone skipped has no length. An hour that a zone repeats around midnight belongs to
    /// the new day both times.
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
        // No instant before this has that local date.
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

    /// How many shifts have happened at an instant.
    fn shifts_until(&self, at_s: i64) -> usize {
        self.shifts.partition_point(|shift| shift.from_s <= at_s)
    }

    /// The offset after so many shifts.
    fn offset_s(&self, shifts: usize) -> i32 {
        shifts.checked_sub(1).map_or(self.first_offset_s, |last| self.shifts[last].offset_s)
    }
}

impl CalendarUnit {
    /// The word for it, as the file spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The length to show, whichever day, week or month it is: a month is shown as the longest one.
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

    /// The first day of the unit in which `day` lies.
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
            // The 32nd day of any month is in the next one.
            Self::Month => self.first_day(first + 31),
        }
    }
}

/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` if there is no such date.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let days = first_of(year, month) + day - 1;
    (day <= 28 || month_of(days) == (year, month)).then_some(days)
}

/// Year and month (1 to 12) of a day. The sums count years from March, so that leap days come
/// last.
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
