//! The terms of a leased limit: params for the store, lifetime, grace period.

use tollgate_core::algorithm::{FixedWindow, Gcra, LeakyBucket, SlidingWindow, TokenBucket};
use tollgate_core::{Algorithm, LimitParams, Rate};

/// The largest difference in pace between two clocks: one part in a thousand. Quartz is ten times
/// better; a clock that is being adjusted, twice.
pub const CLOCK_RATE_ERROR: u64 = 1_000;

/// A duration by the store's clock is at least this long by any other clock.
pub(super) const fn shortest_local_us(duration_us: u64) -> u64 {
    duration_us.saturating_sub(duration_us / CLOCK_RATE_ERROR + 1)
}

/// The terms of a leased limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// The params that the ledger enforces on grants. Units spent a lifetime later then still keep
    /// the limit.
    pub store_params: LimitParams,
    /// The time for which granted units can be spent.
    pub lifetime_us: u64,
    /// The grace period: the time without grants after the store lost writes.
    pub grace_us: u64,
}

impl LeaseTerms {
    /// The terms for a limit. `None` if the store must decide it: the limit is too small, or its
    /// algorithm cannot be leased.
    ///
    /// Units spent up to a lifetime T after their grant add T's refill to any interval. So a
    /// bucket's burst shrinks by that refill, rounded up. A sliding window grants `L * W / (W +
    /// T)`, which pays up to T = W / 40. A fixed window needs no correction: units end with it.
    pub fn for_limit(
        params: &LimitParams,
        lifetime_us: u64,
        min_limit: u64,
        grace_us: u64,
    ) -> Option<Self> {
        if params.capacity() < min_limit.max(2) {
            return None;
        }
        Some(Self { store_params: store_params(params, lifetime_us)?, lifetime_us, grace_us })
    }

    /// The time after which the ledger reclaims the entry of a silent holder. By then its units
    /// have expired, and no return is in flight.
    pub const fn reclaim_us(&self) -> u64 {
        self.lifetime_us.saturating_mul(2) + 1_000_000
    }

    /// The time without a reply after which a process changes its holder, and can no longer return
    /// units. Half a second before the ledger reclaims the entry, for a request on its way.
    pub const fn holder_timeout_us(&self) -> u64 {
        self.reclaim_us() - 500_000
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
