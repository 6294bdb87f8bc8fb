//! Token bucket: a burst of B tokens, refilled at a rate. Suits bursty clients.
//!
//! The tokens are stored as the instant at which the bucket is full again: `x = B - (TAT - t) / E`.
//! That is the same rational number, so decisions equal those of gcra, and a change of rate keeps
//! the owed time. The second word is the latest instant counted, to which earlier instants are
//! clamped.

use super::bucket::{Bucket, Tat};
use super::{Algorithm, Taken};
use crate::{Intent, InvalidParams, MAX_US, Outcome, Rate, Receipt};

/// A burst of B tokens, refilled at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket(Bucket);

/// When the bucket is full again, and the latest instant counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The instant at which the bucket is full.
    pub full: Tat,
    /// The latest instant counted.
    pub latest_us: u64,
}

impl TokenBucket {
    /// Creates a limit. `burst` defaults to the rate's count.
    pub fn try_new(rate: Rate, burst: Option<u64>) -> Result<Self, InvalidParams> {
        Bucket::try_new(rate, burst.unwrap_or(rate.count().into()), 0).map(Self)
    }

    /// The bucket.
    pub const fn bucket(&self) -> &Bucket {
        &self.0
    }
}

impl Algorithm for TokenBucket {
    type State = State;

    fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    fn window_us(&self) -> Option<u64> {
        Some(self.0.window_us())
    }

    #[inline(always)]
    fn redate(&self, state: &mut State, now_us: u64) -> bool {
        let now_us = now_us.min(MAX_US);
        let leapt = state.latest_us > now_us.saturating_add(self.0.leap_us());
        if leapt {
            let by_us = state.latest_us - now_us;
            state.full = match state.full.us.checked_sub(by_us) {
                Some(us) => Tat { us, ..state.full },
                None => Tat::default(),
            };
            state.latest_us = now_us;
        }
        leapt
    }

    #[inline(always)]
    fn decide(&self, state: &State, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        let now_us = now_us.min(MAX_US);
        let counted_us = now_us.max(state.latest_us);
        let backlog = self.0.backlog(state.full, counted_us);
        self.0.decide(backlog, counted_us - now_us, cost, intent)
    }

    #[inline(always)]
    fn charge(&self, state: &mut State, now_us: u64, cost: u64) -> Receipt {
        if cost > 0 {
            self.redate(state, now_us);
        }
        let counted_us = now_us.min(MAX_US).max(state.latest_us);
        if cost > 0 {
            state.latest_us = counted_us;
        }
        self.0.charge(&mut state.full, counted_us, cost)
    }

    #[inline(always)]
    fn take(&self, state: &mut State, now_us: u64, cost: u64) -> Option<Taken> {
        if now_us < state.latest_us {
            return None;
        }
        let taken = self.0.take(&mut state.full, now_us, cost)?;
        if matches!(taken, Taken::Charged(..)) {
            state.latest_us = now_us;
        }
        Some(taken)
    }

    fn give_back(&self, state: &mut State, now_us: u64, units: u64, receipt: &Receipt) {
        let counted_us = now_us.max(state.latest_us);
        self.0.give_back(&mut state.full, counted_us, units, receipt);
    }

    fn idle_at_us(&self, state: &State) -> u64 {
        self.0.idle_at_us(state.full).max(state.latest_us)
    }
}

#[cfg(test)]
mod tests;
