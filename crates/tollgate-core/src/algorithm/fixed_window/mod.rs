//! Fixed window: at most N units in each window aligned to the epoch. Simple; admits up to 2N
//! around a boundary.

use super::Algorithm;
use super::muldiv::Divisor;
use super::window::{index_bits, redate, window_position};
use crate::{Intent, MAX_US, Outcome, Rate, Receipt};

/// N units per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    limit: u64,
    window_us: Divisor,
    index_bits: u32,
}

/// The window last counted in, and its count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The number of the window since the epoch.
    pub index: u64,
    /// The units counted in the window.
    pub count: u64,
}

impl FixedWindow {
    /// Creates a fixed window. Every [`Rate`] is valid.
    pub const fn new(rate: Rate) -> Self {
        let (window_us, index_bits) = (rate.period_us(), index_bits(rate.period_us()));
        Self { limit: rate.count() as u64, window_us: Divisor::new(window_us), index_bits }
    }

    /// The bits of [`State::index`].
    #[inline(always)]
    pub const fn index_bits(&self) -> u32 {
        self.index_bits
    }
}

impl Algorithm for FixedWindow {
    type State = State;

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn window_us(&self) -> Option<u64> {
        Some(self.window_us.get())
    }

    #[inline]
    fn redate(&self, state: &mut State, now_us: u64) -> bool {
        redate(&mut state.index, now_us, self.window_us)
    }

    #[inline]
    fn decide(&self, state: &State, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        let now_us = now_us.min(MAX_US);
        let place = window_position(now_us, self.window_us, state.index);
        let count = state.count_in(place.index);
        let admitted = cost == 0 || count.saturating_add(cost) <= self.limit;
        let after = if admitted && intent == Intent::Take { count + cost } else { count };
        let window_end_us = place.ahead_us + (self.window_us.get() - place.elapsed_us);
        Outcome {
            admitted,
            limit: self.limit,
            remaining: self.limit.saturating_sub(after),
            retry_after_us: if admitted {
                Some(0)
            } else {
                (cost <= self.limit).then_some(window_end_us)
            },
            reset_after_us: window_end_us,
            delay_us: 0,
            more_after_us: (after > 0 && self.limit > 0).then_some(window_end_us),
        }
    }

    #[inline]
    fn charge(&self, state: &mut State, now_us: u64, cost: u64) -> Receipt {
        let now_us = now_us.min(MAX_US);
        let place = window_position(now_us, self.window_us, state.index);
        if cost > 0 {
            let count = state.count_in(place.index);
            *state = State { index: place.index, count: count.saturating_add(cost).min(MAX_US) };
        }
        Receipt { cost, at_us: now_us + place.ahead_us, ..Receipt::default() }
    }

    fn give_back(&self, state: &mut State, now_us: u64, units: u64, receipt: &Receipt) {
        let charged = receipt.at_us / self.window_us.get();
        if state.index == charged && now_us / self.window_us.get() <= charged {
            state.count = state.count.saturating_sub(units);
        }
    }

    fn idle_at_us(&self, state: &State) -> u64 {
        match state.count {
            0 => state.index.saturating_mul(self.window_us.get()),
            _ => (state.index + 1).saturating_mul(self.window_us.get()),
        }
    }
}

impl State {
    /// The count in window `place`. State of a later window counts as that of `place`.
    #[inline]
    const fn count_in(&self, place: u64) -> u64 {
        if self.index >= place { self.count } else { 0 }
    }
}

#[cfg(test)]
mod tests;
