//! GCRA: a token bucket's decisions from a single timestamp. For many keys.

use super::{
    Algorithm,
    bucket::{Bucket, Tat},
};
use crate::{Intent, InvalidNumbers, Outcome, Rate, Receipt};

/// A burst of B units, refilled at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gcra(Bucket);

impl Gcra {
    /// `burst` defaults to the rate's count.
    pub fn try_new(rate: Rate, burst: Option<u64>) -> Result<Self, InvalidNumbers> {
        Bucket::try_new(rate, burst.unwrap_or(rate.count().into()), 0).map(Self)
    }

    /// The rate's period.
    pub const fn period_us(&self) -> u64 {
        self.0.period_us()
    }

    /// The time a unit takes, in units of `1 / scale` microseconds.
    pub const fn interval(&self) -> u64 {
        self.0.interval()
    }

    /// The denominator of [`Tat::fraction`]: one when the emission interval is a whole microsecond.
    pub const fn scale(&self) -> u64 {
        self.0.scale()
    }

    /// The rate's count, which [`Tat::count`] names when there is a fraction.
    pub const fn count(&self) -> u32 {
        self.0.count()
    }
}

impl Algorithm for Gcra {
    type State = Tat;

    fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    fn window_us(&self) -> Option<u64> {
        Some(self.0.window_us())
    }

    #[inline(always)]
    fn decide(&self, state: &Tat, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        self.0.decide(self.0.backlog(*state, now_us), 0, cost, intent)
    }

    #[inline(always)]
    fn charge(&self, state: &mut Tat, now_us: u64, cost: u64) -> Receipt {
        self.0.charge(state, now_us, cost)
    }

    #[inline(always)]
    fn take(&self, state: &mut Tat, now_us: u64, cost: u64) -> Option<(Outcome, Receipt)> {
        self.0.take(state, now_us, cost)
    }

    fn give_back(&self, state: &mut Tat, now_us: u64, units: u64, receipt: &Receipt) {
        self.0.give_back(state, now_us, units, receipt);
    }

    fn idle_at_us(&self, state: &Tat) -> u64 {
        self.0.idle_at_us(*state)
    }
}

#[cfg(test)]
mod tests;
