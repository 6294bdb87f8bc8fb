//! The climb: doubles a limit that is a guess, while that brings throughput.

use super::{CLIMB_CALLS, LimitController, Meter, SCALE, SearchStage, round};

/// Calls that take more times as long as before any request waited are queued in the upstream.
const CALL_RATIO_MAX: u64 = 3;

impl LimitController {
    /// Doubles the limit, unless it is no longer what requests wait for or the last doubling
    /// brought less than half as much more throughput.
    pub(super) fn climb(&mut self) -> SearchStage {
        if self.is_failing(&self.meter) {
            self.back_off(self.meter);
            return SearchStage::Rest;
        }
        let Some(rate) = self.meter.rate().filter(|_| self.meter.is_full()) else {
            return SearchStage::Rest;
        };
        let (level, call_us) = (self.limit, self.meter.call_us());
        if self.rest_call_us > 0 && call_us > CALL_RATIO_MAX * self.rest_call_us {
            self.is_found = true;
            self.set_knee((self.meter.in_flight() * self.rest_call_us / call_us).max(SCALE));
            // The search begins with the high level, while the queue of the upstream drains. An
            // estimate from few calls may be far off.
            self.is_wide = self.meter.completed < CLIMB_CALLS;
            (self.low, self.high, self.parts) = (Meter::default(), Meter::default(), 0);
            return SearchStage::HighSettle;
        }
        if let Some((low, low_rate)) = self.climbed {
            let (low, level) = (u64::from(low), u64::from(level));
            // (rate / low_rate - 1) < (level / low - 1) / 2
            if 2 * rate * low < low_rate * (low + level) {
                self.is_found = true;
                self.set_knee((low * SCALE * rate / low_rate.max(1)).min(level * SCALE));
                self.high = self.meter;
                return SearchStage::LowSettle;
            }
        }
        self.climbed = Some((level, rate));
        if level >= self.ceiling() {
            self.is_found = level >= self.max;
            self.high = self.meter;
            return SearchStage::LowSettle;
        }
        self.set_high_level(level.saturating_mul(2).min(self.ceiling()));
        SearchStage::ClimbSettle
    }

    /// Sets the knee whose limit is `level`.
    fn set_high_level(&mut self, level: u32) {
        // The knee `k` with `k + sqrt(k) = level`, in parts of a request.
        let level = u64::from(level) * SCALE;
        let root = ((4 * level + SCALE) * SCALE).isqrt() - SCALE;
        self.set_knee(root * root / (4 * SCALE));
        self.high_level = round(level).clamp(self.min, self.max);
    }
}
