//! Rates, and the range in which every number is exact.

use core::fmt;

/// The end of time, and the value at which counters saturate: 2^53 - 1, the largest integer that a
/// Lua number holds exactly. As microseconds since the epoch, it is in the year 2255.
pub const MAX_US: u64 = (1 << 53) - 1;

const PERIOD_US_MIN: u64 = 1_000;
const PERIOD_US_MAX: u64 = 366 * 86_400 * 1_000_000;

/// `count` units per `period_us`. A count of zero refuses everything; it never means "unlimited".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u32,
    period_us: u64,
}

impl Rate {
    /// The rate that admits nothing.
    pub const NOTHING: Self = Self { count: 0, period_us: PERIOD_US_MIN };

    /// Creates a rate with a count up to 2^32 - 1 and a period between 1 ms and 366 days.
    pub const fn try_new(count: u64, period_us: u64) -> Result<Self, InvalidParams> {
        if count > u32::MAX as u64 {
            return Err(InvalidParams::CountTooLarge);
        }
        if period_us < PERIOD_US_MIN || period_us > PERIOD_US_MAX {
            return Err(InvalidParams::PeriodOutOfRange);
        }
        Ok(Self { count: count as u32, period_us })
    }

    /// Units per period.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The period, in microseconds.
    pub const fn period_us(self) -> u64 {
        self.period_us
    }
}

/// A value outside the range in which every algorithm is exact. The message gives the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidParams {
    /// A count, burst, queue or slot number above 2^32 - 1.
    CountTooLarge,
    /// A period shorter than a millisecond or longer than 366 days.
    PeriodOutOfRange,
    /// A burst of zero, with which nothing is admitted; a rate of `0/...` says so more clearly.
    ZeroBurst,
    /// `(burst + queue) x period / count` above 100 years.
    HorizonTooFar,
    /// A penalty with `after` or `block` zero, a factor below 1 or above 1,000, or `max` below
    /// `block`.
    PenaltyOutOfRange,
    /// A time to live of zero, or longer than 366 days.
    TtlOutOfRange,
}

impl fmt::Display for InvalidParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CountTooLarge => "a count, burst or queue is at most 4294967295",
            Self::PeriodOutOfRange => "a period is between 1ms and 366d",
            Self::ZeroBurst => "a burst is at least 1; use a rate of 0/... to refuse everything",
            Self::HorizonTooFar => "(burst + queue) x period / count is at most 100 years",
            Self::PenaltyOutOfRange => {
                "a penalty has after >= 1, block > 0, a factor of 1 to 1000 and max >= block"
            }
            Self::TtlOutOfRange => "a ttl is between 1ms and 366d",
        })
    }
}

impl core::error::Error for InvalidParams {}
