//! How much a process should hold: what it spent lately, for half a lifetime more.

use super::LeaseTerms;
use tollgate_core::Algorithm;

/// How fast units were wanted lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Units since the present interval began, which ends with the first request to the store after
    /// a quarter of a lifetime.
    wanted: u64,
    interval_start_us: u64,
    /// What came first of all, and so says nothing about what will follow. A key that is asked for
    /// once must not cost a second call, for returning what it did not need.
    first_units: Option<u64>,
    /// Units for half a lifetime, as the interval before had it.
    previous_target: u64,
    /// And as it is now.
    target: u64,
    /// Whether anything was used since the store was last asked.
    used: bool,
}

impl Demand {
    pub(super) const fn new(now_us: u64) -> Self {
        Self {
            wanted: 0,
            interval_start_us: now_us,
            first_units: None,
            previous_target: 0,
            target: 0,
            used: false,
        }
    }

    pub(super) fn count(&mut self, units: u64) {
        self.wanted = self.wanted.saturating_add(units);
        self.first_units.get_or_insert(units);
        self.used = true;
    }

    /// What was counted was not wanted after all.
    pub(super) fn uncount(&mut self, units: u64) {
        self.wanted = self.wanted.saturating_sub(units);
    }

    /// Whether less than half of the target is held, and some of it was used: what nobody wants is
    /// not asked for.
    pub(super) fn wants_more(&self, good: u64) -> bool {
        self.used && good < self.target / 2
    }

    /// The store had no more to give than is held now, so that asking for the rest at once is of no
    /// use.
    pub(super) fn cap_target(&mut self, good: u64) {
        self.target = self.target.min(good);
    }

    /// How much to ask for, beyond what is held.
    pub(super) fn request_size(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        good: u64,
        need: u64,
    ) -> u64 {
        let pace = self.pace(terms.lifetime_us.max(16), now_us);
        self.target = pace.max(self.previous_target / 2).min(terms.store_params.capacity());
        if now_us >= self.interval_start_us + terms.lifetime_us / 4 {
            (self.wanted, self.interval_start_us, self.first_units) = (0, now_us, Some(0));
            self.previous_target = self.target;
        }
        self.used = false;
        let short = need.saturating_sub(good);
        self.target.saturating_sub(good).max(short).max(1)
    }

    /// Units for half a lifetime. A short time says little, and so do few units: demand is never
    /// taken for more than eight times what was seen, nor for more times than units were seen.
    fn pace(&self, lifetime_us: u64, now_us: u64) -> u64 {
        let during_us = now_us.saturating_sub(self.interval_start_us).max(lifetime_us / 16);
        let seen = u128::from(self.wanted.saturating_sub(self.first_units.unwrap_or(0)));
        let pace = seen * u128::from(lifetime_us / 2) / u128::from(during_us);
        u64::try_from(pace.min(seen * seen)).unwrap_or(u64::MAX)
    }
}
