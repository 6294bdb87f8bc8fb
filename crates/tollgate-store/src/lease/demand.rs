//! Demand: estimates the units that a process should hold, from recent use.

use super::LeaseTerms;
use tollgate_core::Algorithm;

/// The recent demand for units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Units wanted in this interval. The interval ends with the first request to the store after a
    /// quarter of a lifetime.
    wanted: u64,
    interval_start_us: u64,
    /// The units of the first request, which predict nothing. Otherwise a key used once would need
    /// a second call, to return units.
    first_units: Option<u64>,
    /// The target of the previous interval.
    previous_target: u64,
    /// Units for half a lifetime.
    target: u64,
    /// Whether units were wanted since the last request to the store.
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

    pub(super) fn uncount(&mut self, units: u64) {
        self.wanted = self.wanted.saturating_sub(units);
    }

    /// Whether units are in demand and less than half of the target is held.
    pub(super) fn wants_more(&self, spendable: u64) -> bool {
        self.used && spendable < self.target / 2
    }

    /// Lowers the target to the units held, because the store had no more to grant.
    pub(super) fn cap_target(&mut self, spendable: u64) {
        self.target = self.target.min(spendable);
    }

    /// The units to request, beyond those held.
    pub(super) fn request_size(
        &mut self,
        terms: &LeaseTerms,
        now_us: u64,
        spendable: u64,
        need: u64,
    ) -> u64 {
        let pace = self.pace(terms.lifetime_us.max(16), now_us);
        self.target = pace.max(self.previous_target / 2).min(terms.store_params.capacity());
        if now_us >= self.interval_start_us + terms.lifetime_us / 4 {
            (self.wanted, self.interval_start_us, self.first_units) = (0, now_us, Some(0));
            self.previous_target = self.target;
        }
        self.used = false;
        let short = need.saturating_sub(spendable);
        self.target.saturating_sub(spendable).max(short).max(1)
    }

    /// Estimates the units for half a lifetime. A short interval or few units predict little. So
    /// the estimate is at most eight times the units seen, and at most their square.
    fn pace(&self, lifetime_us: u64, now_us: u64) -> u64 {
        let during_us = now_us.saturating_sub(self.interval_start_us).max(lifetime_us / 16);
        let seen = u128::from(self.wanted.saturating_sub(self.first_units.unwrap_or(0)));
        let pace = seen * u128::from(lifetime_us / 2) / u128::from(during_us);
        u64::try_from(pace.min(seen * seen)).unwrap_or(u64::MAX)
    }
}
