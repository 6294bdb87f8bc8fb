//! The search: finds the knee from a low and a high level.

use super::{KNOWN, LimitController, SCALE, SearchStage};

/// An estimate never weighs less than a part of this many.
const WEIGHT_MIN: u32 = 16;

/// Estimates at the low edge, less others, that widen the search.
const LOW_EDGES_MAX: u32 = 3;
/// The deviation of an estimate that chance explains, the most that counts, and the sum that is no
/// chance: in sixteenths of a standard deviation.
const DRIFT_SLACK: i64 = 12;
const DRIFT_MOST: i64 = 48;
const DRIFT_ALARM: i64 = 128;
/// The same for the throughput of one part of the high level; 256 is its mean.
const SHIFT_SLACK: i64 = 26;
const SHIFT_MOST: i64 = 90;
const SHIFT_ALARM: i64 = 128;
/// Calls over which the mean throughput is taken, about.
const REFERENCE_CALLS: u64 = 6_000;

/// Notices values that lie on one side for longer than chance explains: a two-sided CUSUM.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drift {
    up: i64,
    down: i64,
}

impl LimitController {
    /// Whether the upstream takes all requests at the high level: they filled it, and no longer do.
    pub(super) fn is_enough(&self) -> bool {
        self.is_filled && self.meter.full_us * 2 < self.meter.length_us
    }

    /// Learns from a low and a high level.
    pub(super) fn learn(&mut self) -> SearchStage {
        let (low, high) = (self.low, self.high);
        let mut both = low;
        both.add(&high);
        if self.is_failing(&both) {
            self.back_off(both);
            return SearchStage::LowSettle;
        }
        self.endure(&both);
        if self.is_enough() {
            // Only the low level had too many.
            self.set_high_level(self.limit);
            return SearchStage::Rest;
        }
        let Some([(low_mean, low_rate), (high_mean, high_rate)]) = self.compared() else {
            return SearchStage::LowSettle;
        };
        let estimate = low_mean * high_rate / low_rate;
        let estimate = estimate.clamp(low_mean * 3 / 4, high_mean * 9 / 8);
        // Two levels that are far apart must differ clearly: chance must not end the search.
        let low_edge = low_mean * if self.is_wide { 13 } else { 11 };
        let is_edge = estimate * 10 < low_edge || estimate * 10 > high_mean * 9;
        self.weigh(estimate, is_edge, low.completed);
        // A mean of estimates at the low edge follows the knee too slowly, and one at the high edge
        // is no knee.
        let is_low = estimate * 10 < low_mean * 11 && low_mean > u64::from(self.min) * SCALE;
        self.low_edges = if is_low { self.low_edges + 1 } else { self.low_edges.saturating_sub(1) };
        let is_high = self.estimates == KNOWN && self.knee > high_mean - (high_mean - low_mean) / 8;
        if self.estimates <= KNOWN && (self.low_edges >= LOW_EDGES_MAX || is_high) {
            (self.estimates, self.is_wide) = (1, true);
        }
        // A knee that is known needs no climb, for example after errors.
        self.is_found |= self.estimates > KNOWN;
        SearchStage::LowSettle
    }

    /// Lowers the knee without a return to the high level, if the low level has the throughput of
    /// the last high one.
    pub(super) fn descend(&mut self) -> bool {
        let Some([(low_mean, low_rate), (_, high_rate)]) = self.compared() else { return false };
        if !self.is_wide || high_rate * 10 > low_rate * 13 || self.limit <= self.min {
            return false;
        }
        self.high = self.low;
        self.set_knee(low_mean);
        true
    }

    /// Requests in flight and throughput at the low and at the high level, if both were held.
    fn compared(&self) -> Option<[(u64, u64); 2]> {
        let (low, high) = (&self.low, &self.high);
        let (low_mean, high_mean) = (low.in_flight(), high.in_flight());
        // Calls of a higher level may still be in flight, and spared requests exceed the low one.
        let low_level = u64::from(self.levels().0) * SCALE;
        let is_low = low_mean < high_mean && low_mean * 2 <= low_level + high_mean;
        let rates = low.rate().zip(high.rate()).filter(|_| low.is_full() && high.is_full());
        let (low_rate, high_rate) = rates.filter(|_| is_low)?;
        Some([(low_mean, low_rate), (high_mean, high_rate)])
    }

    fn weigh(&mut self, estimate: u64, is_edge: bool, calls: u64) {
        let knee = self.knee.max(1) as i64;
        let off = (estimate as i64 - knee) * (calls << 8).isqrt() as i64 / knee;
        let is_further = self.drift.add(off, DRIFT_SLACK, DRIFT_MOST) > DRIFT_ALARM;
        if self.is_wide || is_further {
            // Each estimate replaces the last, until one is inside.
            self.estimates = 0;
            (self.drift, self.low_edges) = (Drift::default(), 0);
            self.is_wide = is_edge || is_further;
        }
        self.estimates = (self.estimates + 1).min(WEIGHT_MIN);
        let weight = u64::from(self.estimates);
        let knee = (self.knee * (weight - 1) + estimate) / weight;
        self.set_knee(knee.clamp(SCALE, u64::from(self.max) * SCALE));
    }

    /// Searches again if the throughput of the high level has changed. One part alone is chance, or
    /// a pause.
    pub(super) fn notice_change(&mut self) {
        let (Some(rate), calls) = (self.meter.rate(), self.meter.completed) else { return };
        if self.is_wide {
            (self.reference, self.reference_calls, self.shift) = (rate, calls, Drift::default());
            return;
        }
        let off = (rate * 256 / self.reference.max(1)) as i64 - 256;
        if self.is_known() && self.shift.add(off, SHIFT_SLACK, SHIFT_MOST) >= SHIFT_ALARM {
            (self.high, self.is_wide) = (self.meter, true);
            return;
        }
        let all = self.reference_calls + calls;
        self.reference = (self.reference * self.reference_calls + rate * calls) / all;
        self.reference_calls = all.min(REFERENCE_CALLS);
    }
}

impl Drift {
    /// Adds a deviation: chance explains `slack` of it, and at most `most` counts. Returns how far
    /// the deviations so far lie on one side.
    fn add(&mut self, off: i64, slack: i64, most: i64) -> i64 {
        let off = off.clamp(-most, most);
        self.up = (self.up + off - slack).max(0);
        self.down = (self.down - off - slack).max(0);
        self.up.max(self.down)
    }
}
