//! Concurrency: at most L slots at once, freed by their release or their time to live.

use super::expiry_log::{ExpiryLog, Instants};
use super::{Algorithm, LEAP_US_MIN};
use crate::{Intent, InvalidParams, MAX_US, Outcome, Receipt};

const TTL_US_MIN: u64 = 1_000;
const TTL_US_MAX: u64 = 366 * 86_400 * 1_000_000;

/// L slots, each held for at most a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Concurrency {
    limit: u64,
    ttl_us: u64,
}

impl Concurrency {
    /// No slots. Slots that are held already keep the longest time to live.
    pub const CLOSED: Self = Self { limit: 0, ttl_us: TTL_US_MAX };

    /// Creates a limit of up to 2^32 - 1 slots, each held for 1 ms to 366 days.
    pub const fn try_new(slots: u64, ttl_us: u64) -> Result<Self, InvalidParams> {
        if slots > u32::MAX as u64 {
            return Err(InvalidParams::CountTooLarge);
        }
        if ttl_us < TTL_US_MIN || ttl_us > TTL_US_MAX {
            return Err(InvalidParams::TtlOutOfRange);
        }
        Ok(Self { limit: slots, ttl_us })
    }

    /// Returns this limit with another time to live.
    pub fn with_ttl(self, ttl_us: u64) -> Result<Self, InvalidParams> {
        Self::try_new(self.limit, ttl_us)
    }

    /// The longest time that a slot is held.
    pub const fn ttl_us(&self) -> u64 {
        self.ttl_us
    }

    fn instants(state: &ExpiryLog, now_us: u64) -> Instants {
        let now_us = now_us.min(MAX_US);
        let counted_us = now_us.max(state.latest_us());
        Instants { now_us, counted_us, last_end_us: u64::MAX }
    }
}

impl Algorithm for Concurrency {
    type State = ExpiryLog;

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn window_us(&self) -> Option<u64> {
        None
    }

    /// In a log that a clock dated ahead, every slot ends too late. Each is moved to end one time
    /// to live from now.
    fn redate(&self, state: &mut ExpiryLog, now_us: u64) -> bool {
        let now_us = now_us.min(MAX_US);
        state.latest_us() > now_us + self.ttl_us.max(LEAP_US_MIN)
            && state.redate(now_us, now_us + self.ttl_us)
    }

    fn decide(&self, state: &ExpiryLog, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        let at = Self::instants(state, now_us);
        let outcome = state.decide(self.limit, at, cost, intent, at.counted_us + self.ttl_us);
        // Slots are freed when work ends, so the time of the next free slot is unknown.
        Outcome { more_after_us: None, ..outcome }
    }

    fn charge(&self, state: &mut ExpiryLog, now_us: u64, cost: u64) -> Receipt {
        if cost > 0 {
            self.redate(state, now_us);
        }
        let at_us = Self::instants(state, now_us).counted_us;
        let end_us = at_us + self.ttl_us;
        if cost > 0 {
            state.add(at_us, end_us, cost);
        }
        Receipt { cost, at_us, mark_us: end_us, ..Receipt::default() }
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
