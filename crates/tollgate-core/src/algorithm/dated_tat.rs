//! The state of gcra and leaky bucket: a TAT, with a bound that distinguishes a debt from a clock
//! error.

use super::bucket::{Bucket, Tat};

/// A TAT, and a bound on its distance from the charge that produced it.
///
/// Without the bound, a TAT one hour ahead could be a debt of one hour or the error of a clock one
/// hour ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DatedTat {
    /// The instant up to which the key has spent.
    pub tat: Tat,
    /// The most that the TAT is ahead of its charge. Zero means one period, the drain time of most
    /// buckets.
    pub ahead_us: u64,
}

impl Bucket {
    /// The bound after a charge without debt.
    #[inline(always)]
    pub const fn ahead_us(&self) -> u64 {
        if self.window_us() == self.period_us() { 0 } else { self.window_us() }
    }

    /// Returns the state after a charge at `now_us` with the result `tat`.
    #[inline(always)]
    pub fn dated(&self, tat: Tat, now_us: u64) -> DatedTat {
        let ahead_us = self.idle_at_us(tat).saturating_sub(now_us).max(self.window_us());
        DatedTat { tat, ahead_us: if ahead_us == self.period_us() { 0 } else { ahead_us } }
    }

    /// Corrects a TAT whose charge was dated more than [`leap_us`](Self::leap_us) ahead, as if the
    /// charge were made now. Debts are kept.
    #[inline(always)]
    pub(crate) fn redate(&self, state: &mut DatedTat, now_us: u64) -> bool {
        let idle_us = self.idle_at_us(state.tat);
        // A bucket without a rate has no period that a script could know.
        if idle_us <= now_us.saturating_add(self.leap_us()) || self.interval() == 0 {
            return false;
        }
        let ahead_us = if state.ahead_us == 0 { self.period_us() } else { state.ahead_us };
        let leapt = idle_us.saturating_sub(ahead_us) > now_us.saturating_add(self.leap_us());
        if leapt {
            state.tat = Tat { us: now_us + ahead_us, fraction: 0, count: 0 };
        }
        leapt
    }
}

/// Implements `Algorithm` for params that are a bucket, with a [`DatedTat`] as state.
macro_rules! keeps_a_tat {
    ($algorithm:ty) => {
        impl Algorithm for $algorithm {
            type State = DatedTat;

            fn capacity(&self) -> u64 {
                self.0.capacity()
            }

            fn window_us(&self) -> Option<u64> {
                Some(self.0.window_us())
            }

            #[inline(always)]
            fn redate(&self, state: &mut DatedTat, now_us: u64) -> bool {
                self.0.redate(state, now_us)
            }

            #[inline(always)]
            fn decide(&self, state: &DatedTat, now_us: u64, cost: u64, intent: Intent) -> Outcome {
                self.0.decide(self.0.backlog(state.tat, now_us), 0, cost, intent)
            }

            #[inline(always)]
            fn charge(&self, state: &mut DatedTat, now_us: u64, cost: u64) -> Receipt {
                if cost > 0 {
                    // Otherwise the clock error would count as a debt.
                    self.0.redate(state, now_us);
                }
                let receipt = self.0.charge(&mut state.tat, now_us, cost);
                if cost > 0 && self.0.interval() > 0 {
                    *state = self.0.dated(state.tat, receipt.at_us);
                }
                receipt
            }

            #[inline(always)]
            fn take(&self, state: &mut DatedTat, now_us: u64, cost: u64) -> Option<Taken> {
                let taken = self.0.take(&mut state.tat, now_us, cost)?;
                if matches!(taken, Taken::Charged(..)) {
                    state.ahead_us = self.0.ahead_us();
                }
                Some(taken)
            }

            fn give_back(&self, state: &mut DatedTat, now_us: u64, units: u64, receipt: &Receipt) {
                self.0.give_back(&mut state.tat, now_us, units, receipt);
            }

            fn idle_at_us(&self, state: &DatedTat) -> u64 {
                self.0.idle_at_us(state.tat)
            }
        }
    };
}

pub(super) use keeps_a_tat;
