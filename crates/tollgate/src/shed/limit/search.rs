//! The search: finds the knee from a low and a high level.

use super::{KNOWN, LimitController, SCALE};

/// An estimate never weighs less than a part of this many.
const WEIGHT_MIN: u32 = 16;

/// Notices estimates that lie on one side for longer than chance explains: a two-sided CUSUM, in
/// sixteenths of a standard deviation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drift {
    up: i64,
    down: i64,
}

impl LimitController {
    /// Learns from a low and a high level.
    pub(super) fn learn(&mut self) {
        let (low, high) = (self.low, self.high);
        let mut both = low;
        both.add(&high);
        if self.is_failing(&both) {
            return self.back_off(both);
        }
        self.endure(&both);
        let (Some(low_rate), Some(high_rate)) = (low.rate(), high.rate()) else { return };
        let (low_mean, high_mean) = (low.in_flight(), high.in_flight());
        // After a climb, more calls than the low level may still be in flight.
        if !low.is_full() || !high.is_full() || low_mean >= high_mean {
            return;
        }
        let estimate = low_mean * high_rate / low_rate;
        let estimate = estimate.clamp(low_mean * 3 / 4, high_mean * 9 / 8);
        // Two levels that are far apart must differ clearly: chance must not end the search.
        let low_edge = low_mean * if self.is_wide { 13 } else { 11 };
        let is_edge = estimate * 10 < low_edge || estimate * 10 > high_mean * 9;
        self.weigh(estimate, is_edge, low.completed);
        // A mean of estimates at an edge is no knee: it is further away.
        let span = high_mean.saturating_sub(low_mean);
        let is_low = self.knee < low_mean + span / 4 && low_mean > u64::from(self.min) * SCALE;
        let is_high = self.knee > high_mean.saturating_sub(span / 8);
        if self.estimates == KNOWN && (is_low || is_high) {
            self.estimates = 1;
            self.is_wide = is_high;
        }
        // A knee that is known needs no climb, for example after errors.
        self.is_found |= self.estimates > KNOWN;
    }

    fn weigh(&mut self, estimate: u64, is_edge: bool, calls: u64) {
        let is_further = self.drift.add(estimate, self.knee, calls);
        if self.is_wide || is_further {
            // Each estimate replaces the last, until one is inside.
            self.estimates = 0;
            self.drift = Drift::default();
            self.is_wide = is_edge || is_further;
        }
        self.estimates = (self.estimates + 1).min(WEIGHT_MIN);
        let weight = u64::from(self.estimates);
        let knee = (self.knee * (weight - 1) + estimate) / weight;
        self.set_knee(knee.clamp(SCALE, u64::from(self.max) * SCALE));
    }

    /// Searches again if the throughput of the high level has changed, for two parts: one alone is
    /// chance, or a pause.
    pub(super) fn notice_change(&mut self) -> bool {
        let Some(rate) = self.meter.rate() else { return false };
        if self.reference == 0 || self.estimates < KNOWN {
            (self.reference, self.deviations) = (rate, 0);
            return false;
        }
        if rate * 10 <= self.reference * 13 && rate * 13 >= self.reference * 10 {
            self.reference = (self.reference * 7 + rate) / 8;
            self.deviations = 0;
            return false;
        }
        self.deviations += 1;
        if self.deviations < 2 {
            return false;
        }
        (self.reference, self.deviations, self.is_wide) = (rate, 0, true);
        true
    }
}

impl Drift {
    /// The deviation of each estimate that chance explains.
    const SLACK: i64 = 12;
    const ALARM: i64 = 128;
    const MOST: i64 = 48;

    /// Adds an estimate that rests on `calls`; returns whether the knee has moved.
    fn add(&mut self, estimate: u64, knee: u64, calls: u64) -> bool {
        let off = (estimate.abs_diff(knee) * (calls << 8).isqrt() / knee.max(1)) as i64;
        let off = if estimate > knee { off } else { -off }.clamp(-Self::MOST, Self::MOST);
        self.up = (self.up + off - Self::SLACK).max(0);
        self.down = (self.down - off - Self::SLACK).max(0);
        self.up.max(self.down) > Self::ALARM
    }
}
