//! On which terms a limit is leased, if it can be.

use tollgate_core::algorithm::{FixedWindow, Gcra, LeakyBucket, SlidingWindow, TokenBucket};
use tollgate_core::{Algorithm, LimitParams, Rate};

/// How much clocks may differ in pace: one part in so many. Quartz is ten times better, and a clock
/// that is being corrected twice.
pub const CLOCK_RATE_ERROR: u64 = 1_000;

/// So long by the store's clock is at least this long by any other.
pub(super) const fn shortest_local_us(duration_us: u64) -> u64 {
    duration_us.saturating_sub(duration_us / CLOCK_RATE_ERROR + 1)
}

/// On which terms a limit is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// The numbers that the store enforces on grants, so that what is spent a lifetime later keeps
    /// the limit's own.
    pub store_params: LimitParams,
    /// For how long granted units can be spent.
    pub lifetime_us: u64,
    /// For how long nothing is granted after the store has forgotten something.
    pub quiet_us: u64,
}

impl LeaseTerms {
    /// Leases for a limit with these numbers; `None` where it has to be decided directly, because
    /// it is too small for chunks or its algorithm cannot keep its promise with them.
    ///
    /// Units that are spent up to a lifetime T after they were granted add what T returns to any
    /// interval. So a bucket's burst is smaller by that, rounded up, and a sliding window grants
    /// `L * W / (W + T)`, which is worth it up to T = W / 40. A fixed window needs no correction,
    /// since units end with their window.
    pub fn for_limit(
        params: &LimitParams,
        lifetime_us: u64,
        min_limit: u64,
        quiet_us: u64,
    ) -> Option<Self> {
        if params.capacity() < min_limit.max(2) {
            return None;
        }
        let central = store_params(params, lifetime_us)?;
        Some(Self { store_params: central, lifetime_us, quiet_us })
    }

    /// After how long the store forgets a process that says nothing: nothing it holds can be spent
    /// any more, nor is a return under way.
    pub const fn reclaim_us(&self) -> u64 {
        self.lifetime_us.saturating_mul(2) + 1_000_000
    }

    /// After how long without an answer a process gives its holding up, well before the store does.
    pub const fn holder_timeout_us(&self) -> u64 {
        self.lifetime_us + self.lifetime_us / 2
    }
}

fn store_params(params: &LimitParams, lifetime_us: u64) -> Option<LimitParams> {
    let (capacity, period_us) = (params.capacity(), params.period_us());
    let burst = |count: u32| {
        let during = u128::from(count) * u128::from(lifetime_us);
        let during = u64::try_from(during.div_ceil(u128::from(period_us))).ok()?;
        capacity.checked_sub(during).filter(|burst| *burst >= 1)
    };
    let rate = |count: u32| Rate::try_new(count.into(), period_us).ok();
    Some(match params {
        LimitParams::FixedWindow(_) => {
            LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(capacity, period_us).ok()?))
        }
        LimitParams::SlidingWindow(_) => {
            if lifetime_us.saturating_mul(40) > period_us {
                return None;
            }
            let both = u128::from(period_us) + u128::from(lifetime_us);
            let limit = u128::from(capacity) * u128::from(period_us) / both;
            let limit = u64::try_from(limit).ok().filter(|limit| *limit >= 1)?;
            LimitParams::SlidingWindow(SlidingWindow::new(Rate::try_new(limit, period_us).ok()?))
        }
        LimitParams::Gcra(own) => {
            let count = own.bucket().count();
            LimitParams::Gcra(Gcra::try_new(rate(count)?, Some(burst(count)?)).ok()?)
        }
        LimitParams::TokenBucket(own) => {
            let count = own.bucket().count();
            LimitParams::TokenBucket(TokenBucket::try_new(rate(count)?, Some(burst(count)?)).ok()?)
        }
        LimitParams::LeakyBucket(own) if own.bucket().burst() == capacity && capacity > 1 => {
            let count = own.bucket().count();
            let burst = Some(burst(count)?);
            LimitParams::LeakyBucket(LeakyBucket::try_new(rate(count)?, burst, None).ok()?)
        }
        _ => return None,
    })
}
