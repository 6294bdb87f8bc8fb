//! The climb: doubles a limit that is a guess, while that brings throughput.

use super::meter::EVIDENCE;
use super::{LimitController, Meter, SCALE, SearchStage, round};

/// Calls that a level of a climb completes while it is measured: few, since levels differ by two.
pub(super) const CLIMB_CALLS: u64 = 32;
/// The longest time that a level of a climb settles, and for which few calls are waited for.
pub(super) const CLIMB_US_MAX: u64 = 500_000;
/// Calls that take more times as long as before any request waited may be queued in the upstream.
const CALL_RATIO_MAX: u64 = 3;
/// Calls that a level completes before the climb ends there.
const END_CALLS: u64 = 4 * CLIMB_CALLS;
/// The most parts of a check.
const CHECK_PARTS: u32 = 8;
/// The most that one part without completed calls counts: it may be a pause of the upstream.
const PAUSE_EVIDENCE: i64 = 12 << 8;

impl LimitController {
    /// Whether a level is measured for longer: few calls suffice to climb on, but not to end.
    pub(super) fn is_vague(&self) -> bool {
        let Meter { completed, length_us, abandoned, .. } = self.meter;
        let calls = match self.meter.rate() {
            Some(_) if self.is_slow() => CLIMB_CALLS,
            Some(rate) if self.is_worth(rate) => 0,
            _ => END_CALLS,
        };
        let is_short = completed < calls && length_us < CLIMB_US_MAX;
        // The ends of abandoned calls are guesses.
        is_short && abandoned == 0 && self.meter.is_full() && !self.is_failing(&self.meter)
    }

    /// Whether calls take so long that they may be queued in the upstream.
    fn is_slow(&self) -> bool {
        self.rest_call_us > 0 && self.meter.call_us() > CALL_RATIO_MAX * self.rest_call_us
    }

    /// Whether this level has at least half as much more throughput as it has more requests in
    /// flight than the last one. A level whose calls take less than half as long again does not
    /// queue: only chance denies it throughput.
    fn is_worth(&self, rate: u64) -> bool {
        let is_queued = 2 * self.meter.call_us() >= 3 * self.rest_call_us;
        let Some((low, low_rate)) = self.climbed.filter(|_| is_queued) else { return true };
        let (low, level) = (u64::from(low), u64::from(self.limit));
        // rate / low_rate - 1 >= (level / low - 1) / 2
        2 * rate * low >= low_rate * (low + level)
    }

    /// Doubles the limit, unless it is no longer what requests wait for or the last doubling
    /// brought too little.
    pub(super) fn climb(&mut self) -> SearchStage {
        if self.is_failing(&self.meter) {
            self.back_off(self.meter);
            return SearchStage::Rest;
        }
        let Some(rate) = self.meter.rate().filter(|_| self.meter.is_full()) else {
            return SearchStage::Rest;
        };
        let (level, call_us) = (self.limit, self.meter.call_us());
        self.high = self.meter;
        if self.is_slow() {
            self.set_knee((self.meter.in_flight() * self.rest_call_us / call_us).max(SCALE));
            (self.climbed, self.evidence, self.parts) = (Some((level, rate)), 0, 0);
            return SearchStage::CheckSettle;
        }
        match self.climbed {
            Some((low, low_rate)) if !self.is_worth(rate) => {
                self.is_found = true;
                let knee = u64::from(low) * SCALE * rate / low_rate.max(1);
                self.set_knee(knee.min(u64::from(level) * SCALE));
                SearchStage::LowSettle
            }
            _ => self.double(level, (level, rate)),
        }
    }

    /// Doubles `level`. The next one is compared with `climbed`.
    fn double(&mut self, level: u32, climbed: (u32, u64)) -> SearchStage {
        self.climbed = Some(climbed);
        if level >= self.ceiling() {
            self.is_found = level >= self.max;
            // A check has lowered it.
            self.set_high_level(level);
            return SearchStage::LowSettle;
        }
        self.set_high_level(level.saturating_mul(2).min(self.ceiling()));
        SearchStage::ClimbSettle
    }

    /// Decides whether calls at the last level were queued, or have become slower: at the level
    /// where a queue would end, only slower calls have less throughput.
    pub(super) fn check(&mut self) -> SearchStage {
        let Some((level, _)) = self.climbed else { return SearchStage::Rest };
        if self.is_failing(&self.meter) {
            self.set_high_level(level);
            self.back_off(self.meter);
            return SearchStage::Rest;
        }
        if !self.meter.is_full() {
            self.set_high_level(level);
            return SearchStage::Rest;
        }
        self.evidence += self.meter.queue_evidence(&self.high).max(-PAUSE_EVIDENCE);
        self.parts += 1;
        if self.evidence.abs() < EVIDENCE && self.parts < CHECK_PARTS {
            return SearchStage::CheckMeasure;
        }
        if self.evidence < 0 {
            self.rest_call_us = self.high.call_us();
            // The last level was measured while calls became slower.
            let rate = (self.meter.completed << 28) / self.meter.length_us.max(1);
            let low = (round(self.meter.in_flight()), rate);
            return self.double(level, low);
        }
        self.is_found = true;
        // An estimate from few calls may be far off.
        self.is_wide = self.high.completed < CLIMB_CALLS;
        (self.low, self.high, self.parts) = (Meter::default(), Meter::default(), 0);
        self.is_filled = true;
        SearchStage::HighMeasure
    }

    /// Sets the knee whose limit is `level`.
    pub(super) fn set_high_level(&mut self, level: u32) {
        // The knee `k` with `k + sqrt(k) = level`, in parts of a request.
        let level = u64::from(level) * SCALE;
        let root = ((4 * level + SCALE) * SCALE).isqrt() - SCALE;
        self.set_knee(root * root / (4 * SCALE));
        self.high_level = round(level).clamp(self.min, self.max);
    }
}
