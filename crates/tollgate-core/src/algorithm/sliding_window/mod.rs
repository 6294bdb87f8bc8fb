//! Sliding window: the previous window's count fades linearly while the current one fills. Two
//! counters for any rate. Short bursts stay within N; any interval T admits at most N(1 + T/W).

use super::muldiv::{Divisor, mul_div_ceil};
use super::window::{WindowPosition, index_bits, redate, window_position};
use super::{Algorithm, Taken};
use crate::{Intent, MAX_US, Outcome, Rate, Receipt};

/// N units per sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    limit: u64,
    window_us: Divisor,
    /// The time from the end of a full window until one unit fits again.
    unit_us: u64,
    index_bits: u32,
}

/// The window last counted in, its count, and the count of the window before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The number of the window since the epoch.
    pub index: u64,
    /// The units counted in the window before.
    pub previous: u64,
    /// The units counted in this window.
    pub current: u64,
}

/// The counts of the previous and the current window.
type Counts = (u64, u64);

impl SlidingWindow {
    /// Creates a sliding window. Every [`Rate`] is valid.
    pub const fn new(rate: Rate) -> Self {
        let (limit, window_us) = (rate.count() as u64, rate.period_us());
        let unit_us = if limit == 0 { 0 } else { window_us.div_ceil(limit) };
        let index_bits = index_bits(window_us);
        Self { limit, window_us: Divisor::new(window_us), unit_us, index_bits }
    }

    /// The bits of [`State::index`].
    #[inline(always)]
    pub const fn index_bits(&self) -> u32 {
        self.index_bits
    }

    /// Returns the units of the previous window, the part of them that still counts at `now_us`,
    /// and the units of the current window.
    pub fn counted(&self, state: &State, now_us: u64) -> [u64; 3] {
        let (_, place, (previous, current)) = self.position(state, now_us);
        [previous, self.weight(previous, place.elapsed_us), current]
    }

    /// The weight of the previous window, rounded up. Rounding changes no decision, since costs are
    /// whole numbers.
    #[inline(always)]
    fn weight(&self, previous: u64, elapsed_us: u64) -> u64 {
        self.window_us.mul_div_ceil(previous, self.window_us.get() - elapsed_us)
    }

    /// The units that fit beside the weight of the previous window and the units of the current.
    #[inline(always)]
    const fn remaining(&self, weight: u64, current: u64) -> u64 {
        self.limit.saturating_sub(weight.saturating_add(current))
    }

    /// The time from the counted instant until `cost` fits. `cost` does not fit yet, and is within
    /// the capacity.
    #[inline(always)]
    fn wait_us(&self, previous: u64, current: u64, elapsed_us: u64, cost: u64) -> u64 {
        let w = self.window_us.get();
        // The usual refusal, a full window, needs no division.
        if current == self.limit && cost == 1 {
            return (w - elapsed_us) + self.unit_us;
        }
        match self.limit.checked_sub(current.saturating_add(cost)) {
            Some(room) => mul_div_ceil(w, previous - room, previous) - elapsed_us,
            None => (w - elapsed_us) + mul_div_ceil(w, current + cost - self.limit, current),
        }
    }

    /// Returns the clamped instant, its window, and the counts there.
    #[inline]
    fn position(&self, state: &State, now_us: u64) -> (u64, WindowPosition, Counts) {
        let now_us = now_us.min(MAX_US);
        let place = window_position(now_us, self.window_us, state.index);
        (now_us, place, state.counts_in(place.index))
    }

    /// [Takes](Algorithm::take) `cost` if the state is of the window of `now_us`, as a busy key's
    /// nearly always is. That needs few of the branches.
    #[inline(always)]
    pub fn take_in_window(&self, state: &mut State, now_us: u64, cost: u64) -> Option<Taken> {
        let now_us = now_us.min(MAX_US);
        let (index, elapsed_us) = self.window_us.div_rem(now_us);
        if index != state.index || cost == 0 {
            return None;
        }
        let place = WindowPosition { index, elapsed_us, ahead_us: 0 };
        Some(self.take_at(state, now_us, place, (state.previous, state.current), cost))
    }

    /// [Takes](Algorithm::take) `cost` on top of the counts in a window.
    #[inline(always)]
    fn take_at(
        &self,
        state: &mut State,
        now_us: u64,
        place: WindowPosition,
        (previous, current): Counts,
        cost: u64,
    ) -> Taken {
        if current >= self.limit {
            // The current window is full by itself, so the weight of the previous one does not
            // matter.
            return Taken::Refused(self.outcome(false, place, 0, (previous, current), cost));
        }
        let weight = self.weight(previous, place.elapsed_us);
        let remaining = self.remaining(weight, current);
        if cost > remaining {
            return Taken::Refused(self.outcome(
                false,
                place,
                remaining,
                (previous, current),
                cost,
            ));
        }
        state.count(place.index, (previous, current), cost);
        let counts = (previous, current + cost);
        let outcome = self.outcome(true, place, remaining - cost, counts, cost);
        let at_us = now_us + place.ahead_us;
        Taken::Charged(outcome, Receipt { cost, at_us, ..Receipt::default() })
    }

    /// Returns the outcome of a decision after which the window has `current` units.
    // Inlined, so that callers compute only the figures that they read: each costs a division.
    #[inline(always)]
    fn outcome(
        &self,
        admitted: bool,
        place: WindowPosition,
        remaining: u64,
        (previous, current): Counts,
        cost: u64,
    ) -> Outcome {
        let WindowPosition { elapsed_us, ahead_us, .. } = place;
        let window_us = self.window_us.get();
        let wait_us = |cost| ahead_us + self.wait_us(previous, current, elapsed_us, cost);
        Outcome {
            admitted,
            limit: self.limit,
            remaining,
            retry_after_us: if admitted {
                Some(0)
            } else {
                (cost <= self.limit).then(|| wait_us(cost))
            },
            reset_after_us: match (current, previous) {
                (0, 0) => ahead_us,
                (0, _) => ahead_us + window_us - elapsed_us,
                (_, _) => ahead_us + 2 * window_us - elapsed_us,
            },
            delay_us: 0,
            more_after_us: (remaining < self.limit).then(|| wait_us(remaining + 1)),
        }
    }
}

impl Algorithm for SlidingWindow {
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
        let (_, place, (previous, current)) = self.position(state, now_us);
        let remaining = self.remaining(self.weight(previous, place.elapsed_us), current);
        let admitted = cost <= remaining;
        let taken = if admitted && intent == Intent::Take { cost } else { 0 };
        self.outcome(admitted, place, remaining - taken, (previous, current + taken), cost)
    }

    #[inline]
    fn charge(&self, state: &mut State, now_us: u64, cost: u64) -> Receipt {
        let (now_us, place, counts) = self.position(state, now_us);
        if cost > 0 {
            state.count(place.index, counts, cost);
        }
        Receipt { cost, at_us: now_us + place.ahead_us, ..Receipt::default() }
    }

    /// Computes the position once: dividing by the window is most of the work.
    #[inline(always)]
    fn take(&self, state: &mut State, now_us: u64, cost: u64) -> Option<Taken> {
        if cost == 0 {
            return None;
        }
        let (now_us, place, counts) = self.position(state, now_us);
        Some(self.take_at(state, now_us, place, counts, cost))
    }

    fn give_back(&self, state: &mut State, now_us: u64, units: u64, receipt: &Receipt) {
        let charged = receipt.at_us / self.window_us.get();
        if now_us / self.window_us.get() > charged + 1 {
            return;
        }
        if state.index == charged {
            state.current = state.current.saturating_sub(units);
        } else if state.index == charged + 1 {
            state.previous = state.previous.saturating_sub(units);
        }
    }

    fn idle_at_us(&self, state: &State) -> u64 {
        match (state.current, state.previous) {
            (0, 0) => state.index.saturating_mul(self.window_us.get()),
            (0, _) => (state.index + 1).saturating_mul(self.window_us.get()),
            (_, _) => (state.index + 2).saturating_mul(self.window_us.get()),
        }
    }
}

impl State {
    /// The counts in window `place`. State of a later window counts as that of `place`.
    #[inline]
    const fn counts_in(&self, place: u64) -> Counts {
        if self.index >= place {
            (self.previous, self.current)
        } else if self.index + 1 == place {
            (self.current, 0)
        } else {
            (0, 0)
        }
    }

    /// Adds `cost` in window `index`, on top of the given counts.
    #[inline]
    fn count(&mut self, index: u64, (previous, current): Counts, cost: u64) {
        *self = Self { index, previous, current: current.saturating_add(cost).min(MAX_US) };
    }
}

#[cfg(test)]
mod tests;
