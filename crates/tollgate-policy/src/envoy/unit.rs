//! The units of time that the protocol has.

use tollgate_core::CalendarUnit;

/// A unit, numbered as `RateLimitResponse.RateLimit.Unit` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Second = 1,
    Minute = 2,
    Hour = 3,
    Day = 4,
    /// Thirty days.
    Month = 5,
    /// 365 days.
    Year = 6,
    Week = 7,
}

impl Unit {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Month, Self::Year, Self::Week];

    /// How long it is.
    pub const fn period_us(self) -> u64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
            Self::Month => 30 * 86_400,
            Self::Year => 365 * 86_400,
        };
        seconds * 1_000_000
    }

    /// Its name in the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }

    /// The unit with exactly this length. A month of the calendar is shown with 31 days.
    pub fn of_period_us(period_us: u64) -> Option<Self> {
        if period_us == CalendarUnit::Month.nominal_us() {
            return Some(Self::Month);
        }
        Self::ALL.into_iter().find(|unit| unit.period_us() == period_us)
    }

    /// By its name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// By its number in a response, where there is a week.
    pub fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| *unit as i32 == number)
    }
}
