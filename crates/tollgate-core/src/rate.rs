//! How much per how long.

use crate::InvalidParams;

const PERIOD_US_MIN: u64 = 1_000;
const PERIOD_US_MAX: u64 = 366 * 86_400 * 1_000_000;

/// `count` units per `period_us`. A count of zero refuses everything; it never means "unlimited".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u32,
    period_us: u64,
}

impl Rate {
    /// Nothing, ever.
    pub const NOTHING: Self = Self { count: 0, period_us: PERIOD_US_MIN };

    /// A count up to 2^32 - 1 per period between 1 ms and 366 days.
    pub fn try_new(count: u64, period_us: u64) -> Result<Self, InvalidParams> {
        let count = u32::try_from(count).map_err(|_| InvalidParams::CountTooLarge)?;
        if !(PERIOD_US_MIN..=PERIOD_US_MAX).contains(&period_us) {
            return Err(InvalidParams::PeriodOutOfRange);
        }
        Ok(Self { count, period_us })
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
