//! How much a process should hold: what it spent lately, for half a lifetime more.

use super::Terms;
use tollgate_core::Algorithm;

/// How fast units were wanted lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    wanted: u64,
    from_us: u64,
    /// Units for half a lifetime.
    target: u64,
}

impl Demand {
    pub(super) const fn new(now_us: u64) -> Self {
        Self { wanted: 0, from_us: now_us, target: 0 }
    }

    pub(super) fn count(&mut self, units: u64) {
        self.wanted = self.wanted.saturating_add(units);
    }

    /// Whether less than half of the target is held, and some of it was used: what nobody wants is not asked for.
    pub(super) fn wants_more(&self, good: u64) -> bool {
        self.wanted > 0 && good < self.target / 2
    }

    /// The store had no more to give than is held now, so that asking for the rest at once is of no use.
    pub(super) fn make_do_with(&mut self, good: u64) {
        self.target = self.target.min(good);
    }

    /// How much to ask for, beyond what is held. Starts to count anew.
    pub(super) fn want(&mut self, terms: &Terms, now_us: u64, good: u64, need: u64) -> u64 {
        let lifetime_us = terms.lifetime_us.max(16);
        // So short a time says little, so that demand is never taken for more than eight times what it was.
        let during_us = now_us.saturating_sub(self.from_us).max(lifetime_us / 16);
        let pace = u128::from(self.wanted) * u128::from(lifetime_us / 2) / u128::from(during_us);
        let pace = u64::try_from(pace).unwrap_or(u64::MAX);
        let most = terms.central.capacity();
        self.target = pace.max(self.target / 2).min(most);
        (self.wanted, self.from_us) = (0, now_us);
        let short = need.saturating_sub(good);
        self.target.saturating_sub(good).max(short).max(1)
    }
}
