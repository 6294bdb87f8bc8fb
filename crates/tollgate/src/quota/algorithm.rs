//! The names of the algorithms.

use std::fmt;
use tollgate_core::LimitParams;

/// The algorithm of a quota. [`Quota::bound`](super::Quota::bound) gives the guarantee of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// The previous window's count fades while the current one fills. Two counters per key; the
    /// choice for most purposes.
    #[default]
    SlidingWindow,
    /// N in each window; windows begin at whole multiples of the period since the Unix epoch.
    /// Simple to explain, but two windows' worth fit around a boundary.
    FixedWindow,
    /// Each admission is remembered for one period. Exact, at the price of memory; for audits and
    /// low volumes.
    SlidingLog,
    /// A bucket of tokens that refills at the quota's pace.
    TokenBucket,
    /// The token bucket's decisions from a single timestamp. For bursty clients and many keys.
    Gcra,
    /// A strict pace: one at a time unless a burst is given. With a queue, the decision on an early
    /// request has its delay.
    LeakyBucket,
    /// At most N at once.
    Concurrency,
}

impl Algorithm {
    pub(super) const fn of(params: &LimitParams) -> Self {
        match params {
            LimitParams::FixedWindow(_) | LimitParams::CalendarWindow(_) => Self::FixedWindow,
            LimitParams::SlidingLog(_) => Self::SlidingLog,
            LimitParams::TokenBucket(_) => Self::TokenBucket,
            LimitParams::Gcra(_) => Self::Gcra,
            LimitParams::LeakyBucket(_) => Self::LeakyBucket,
            LimitParams::Concurrency(_) => Self::Concurrency,
            // `LimitParams` may get more variants, but a quota is only made of these.
            _ => Self::SlidingWindow,
        }
    }

    pub(super) const fn has_burst(self) -> bool {
        matches!(self, Self::TokenBucket | Self::Gcra | Self::LeakyBucket)
    }

    /// The name in the policy file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlidingWindow => "sliding-window",
            Self::FixedWindow => "fixed-window",
            Self::SlidingLog => "sliding-log",
            Self::TokenBucket => "token-bucket",
            Self::Gcra => "gcra",
            Self::LeakyBucket => "leaky-bucket",
            Self::Concurrency => "concurrency",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
