//! Sliding log: remembers every admission for one window. Exact, but uses memory for each; for
//! audits and low volumes.

use super::Algorithm;
use super::expiry_log::{ExpiryLog, Instants};
use crate::{Intent, MAX_US, Outcome, Rate, Receipt};

/// N units in any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    limit: u64,
    window_us: u64,
}

impl SlidingLog {
    /// Creates a sliding log. Every [`Rate`] is valid.
    pub const fn new(rate: Rate) -> Self {
        Self { limit: rate.count() as u64, window_us: rate.period_us() }
    }

    /// Returns the instants of a decision. An entry dated more than one window ahead counts as one
    /// window ahead.
    fn instants(&self, state: &ExpiryLog, now_us: u64) -> Instants {
        let now_us = now_us.min(MAX_US);
        let latest_us = state.latest_us().min(now_us + self.window_us);
        Instants {
            now_us,
            counted_us: now_us.max(latest_us),
            last_end_us: now_us + 2 * self.window_us,
        }
    }
}

impl Algorithm for SlidingLog {
    type State = ExpiryLog;

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn window_us(&self) -> Option<u64> {
        Some(self.window_us)
    }

    fn redate(&self, state: &mut ExpiryLog, now_us: u64) -> bool {
        let at = self.instants(state, now_us);
        state.redate(at.counted_us, at.last_end_us)
    }

    fn decide(&self, state: &ExpiryLog, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        let at = self.instants(state, now_us);
        state.decide(self.limit, at, cost, intent, at.counted_us + self.window_us)
    }

    fn charge(&self, state: &mut ExpiryLog, now_us: u64, cost: u64) -> Receipt {
        let at = self.instants(state, now_us);
        let end_us = at.counted_us + self.window_us;
        if cost > 0 {
            state.redate(at.counted_us, at.last_end_us);
            state.add(at.counted_us, end_us, cost);
        }
        Receipt { cost, at_us: at.counted_us, mark_us: end_us, ..Receipt::default() }
    }

    fn give_back(&self, state: &mut ExpiryLog, now_us: u64, units: u64, receipt: &Receipt) {
        state.remove(now_us, receipt.mark_us, units);
    }

    fn idle_at_us(&self, state: &ExpiryLog) -> u64 {
        state.idle_at_us()
    }
}

#[cfg(test)]
mod tests;
