//! Why a set of numbers cannot be a limit.

use core::fmt;

/// A value outside the range in which every algorithm is exact. The message says the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidParams {
    /// A count, burst, queue or slot number above 2^32 - 1.
    CountTooLarge,
    /// A period shorter than a millisecond or longer than 366 days.
    PeriodOutOfRange,
    /// A burst of zero: a bucket that holds nothing admits nothing; a rate of `0/...` says so
    /// better.
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
