//! The limit: finds the knee of throughput over requests in flight, under overload.
//!
//! The controller compares two levels in turn: `low`, just under the knee it believes in, and
//! `high`, the limit in force. If `low` keeps every worker busy, both levels have the same
//! throughput, and the knee is at `low` or under it. Otherwise a call takes `low / throughput`
//! without waiting, and by Little's law the knee is `low * throughput at high / throughput at low`.
//! The search compares levels with each other and with no baseline, so it cannot creep.
//!
//! Until a knee is found, nothing says that the upstream is overloaded: requests wait because the
//! limit is a guess. So the limit climbs first. It doubles as long as that brings half as much more
//! throughput, and then the two levels are compared. A call that takes three times as long as it
//! took before any request waited ends the climb at once: by Little's law the knee is at a third.

/// The knee is kept in parts of a request.
const SCALE: u64 = 256;
/// Calls that a level completes while it is measured.
const CALLS: u64 = 64;
/// Calls that a level of a climb completes while it is measured: fewer, since levels differ by two.
const CLIMB_CALLS: u64 = 32;
/// The longest time that a level of a climb settles, and is measured.
const CLIMB_US_MAX: u64 = 500_000;
/// Calls that take more times as long as before any request waited are queued in the upstream.
const CALL_RATIO_MAX: u64 = 3;
/// Parts of the high level, each three times as long, once the knee is known.
const HIGH_PARTS: u32 = 4;
/// Estimates until the knee counts as known.
const KNOWN: u32 = 8;
/// An estimate never weighs less than a part of this many.
const WEIGHT_MIN: u32 = 16;
/// The shortest and longest time for which a level is measured.
const MEASURE_US: (u64, u64) = (10_000, 2_000_000);

/// Finds the limit. Time and requests in flight are arguments.
#[derive(Debug)]
pub(super) struct LimitController {
    min: u32,
    max: u32,
    /// Times [`SCALE`].
    knee: u64,
    /// The limit without the probing. It follows the knee and the bounds.
    high_level: u32,
    limit: u32,
    stage: Stage,
    stage_start_us: u64,
    stage_end_us: u64,
    meter: Meter,
    low: Meter,
    high: Meter,
    /// Parts of the high level so far.
    parts: u32,
    /// Estimates since the search began.
    estimates: u32,
    /// Whether the last estimate was at an edge of what it can be: the knee is further away.
    is_wide: bool,
    drift: Drift,
    /// Whether the limit climbed to a level that brought no more throughput.
    is_found: bool,
    /// The last level of a climb, and its throughput.
    climbed: Option<(u32, u64)>,
    /// Mean time of a call while no request waited; 0 is unknown.
    rest_call_us: u64,
    /// Throughput at the high level: calls in 2^20 us, times 256; 0 is unknown.
    reference: u64,
    /// Parts in a row whose throughput is another.
    deviations: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The upstream keeps up, or too little is asked of it to learn from.
    Rest,
    ClimbSettle,
    ClimbMeasure,
    LowSettle,
    LowMeasure,
    HighSettle,
    HighMeasure,
}

/// What happened at one level.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    length_us: u64,
    last_us: u64,
    /// Requests in flight, summed over time.
    in_flight_us: u64,
    /// Time at the limit.
    full_us: u64,
    completed: u64,
    overloaded: u64,
}

/// Notices estimates that lie on one side for longer than chance explains: a two-sided CUSUM, in
/// sixteenths of a standard deviation.
#[derive(Debug, Clone, Copy, Default)]
struct Drift {
    up: i64,
    down: i64,
}

/// What the controller needs to know about the load.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadView {
    pub(super) is_overloaded: bool,
    /// Whether requests wait for the limit.
    pub(super) is_waiting: bool,
    /// Mean time between two completed calls.
    pub(super) gap_us: u64,
}

impl LimitController {
    pub(super) fn new(min: u32, max: u32, start: u32) -> Self {
        let mut controller = Self {
            min,
            max,
            knee: u64::from(start) * SCALE,
            high_level: 0,
            limit: 0,
            stage: Stage::Rest,
            stage_start_us: 0,
            stage_end_us: u64::MAX,
            meter: Meter::default(),
            low: Meter::default(),
            high: Meter::default(),
            parts: 0,
            estimates: 0,
            is_wide: true,
            drift: Drift::default(),
            is_found: false,
            climbed: None,
            rest_call_us: 0,
            reference: 0,
            deviations: 0,
        };
        controller.set_knee(controller.knee);
        controller.limit = controller.high_level;
        controller
    }

    pub(super) fn set_bounds(&mut self, min: u32, max: u32) {
        (self.min, self.max) = (min, max);
        self.limit = self.limit.clamp(min, max);
        self.set_knee(self.knee);
    }

    /// The limit at this moment.
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether the limit is a guess that may still double.
    #[inline]
    pub(super) fn is_climbing(&self) -> bool {
        matches!(self.stage, Stage::ClimbSettle | Stage::ClimbMeasure)
    }

    /// The limit without the probing.
    #[inline]
    pub(super) fn high(&self) -> u32 {
        self.high_level
    }

    fn set_knee(&mut self, knee: u64) {
        self.knee = knee;
        // Calls between an answer and the next request keep no worker busy.
        let headroom = (knee * SCALE).isqrt();
        self.high_level = round(knee + headroom).clamp(self.min, self.max);
    }

    /// The two levels to compare. They are further apart while the knee is unknown.
    fn levels(&self) -> (u32, u32) {
        let (low, high) = match (self.is_wide, self.estimates < KNOWN) {
            (true, _) => (self.knee / 2, round(self.knee + self.knee / 2).max(self.high())),
            (false, true) => (self.knee - self.knee / 4, self.high()),
            (false, false) => (self.knee - self.knee / 8, self.high()),
        };
        let high = high.clamp(self.min, self.max);
        let low = round(low).clamp(self.min, self.max);
        (low.min(high - u32::from(high > self.min)), high)
    }

    #[inline]
    pub(super) fn is_stage_over(&self, now_us: u64) -> bool {
        now_us >= self.stage_end_us
    }

    /// Adds the time since the last event.
    #[inline]
    pub(super) fn advance(&mut self, now_us: u64, in_flight: u32) {
        self.meter.advance(now_us, in_flight, self.limit);
    }

    /// Counts a call that ended at this time. A call that ended at an earlier level, and is
    /// reported late, says nothing about this one.
    #[inline]
    pub(super) fn completed(&mut self, ended_us: u64, is_overloaded: bool) {
        match is_overloaded {
            _ if ended_us < self.stage_start_us => {}
            true => self.meter.overloaded += 1,
            false => self.meter.completed += 1,
        }
    }

    /// Begins to learn when overload begins; called once a tick.
    pub(super) fn start(&mut self, now_us: u64, load: LoadView) {
        if self.stage != Stage::Rest {
            return;
        }
        if !self.is_found && load.is_waiting && self.high_level < self.max {
            self.climbed = None;
            // A level settles for a call, unless its length is known from before.
            let known = self.rest_call_us > 0;
            let stage = if known { Stage::ClimbMeasure } else { Stage::ClimbSettle };
            return self.enter(now_us, stage, load);
        }
        if load.is_overloaded {
            return self.enter(now_us, Stage::LowSettle, load);
        }
        if self.meter.is_failing() {
            self.back_off();
            self.enter(now_us, Stage::Rest, load);
        } else if self.meter.completed >= CALLS {
            if self.meter.full_us == 0 {
                self.rest_call_us = self.meter.call_us();
            }
            self.meter = Meter { last_us: now_us, ..Meter::default() };
        }
    }

    /// Lowers the knee because the upstream says that it is overloaded.
    fn back_off(&mut self) {
        self.set_knee((self.knee - self.knee / 8).max(SCALE));
        (self.estimates, self.is_wide) = (0, true);
        (self.is_found, self.climbed) = (false, None);
    }

    /// Ends a stage whose time is over.
    pub(super) fn next_stage(&mut self, now_us: u64, in_flight: u32, load: LoadView) {
        let end_us = self.stage_end_us.min(now_us);
        self.meter.advance(end_us, in_flight, self.limit);
        let next = match self.stage {
            Stage::ClimbSettle => Stage::ClimbMeasure,
            Stage::ClimbMeasure => self.climb(),
            _ if !load.is_overloaded => Stage::Rest,
            Stage::Rest => Stage::Rest,
            Stage::LowSettle => Stage::LowMeasure,
            Stage::LowMeasure => {
                self.low = self.meter;
                Stage::HighSettle
            }
            Stage::HighSettle => {
                (self.high, self.parts) = (Meter::default(), 0);
                Stage::HighMeasure
            }
            Stage::HighMeasure => {
                self.high.add(&self.meter);
                self.parts += 1;
                let is_known = self.estimates >= KNOWN;
                let is_other = self.notice_change();
                match is_known && !is_other && self.parts < HIGH_PARTS {
                    true => Stage::HighMeasure,
                    false => {
                        self.learn();
                        Stage::LowSettle
                    }
                }
            }
        };
        self.enter(now_us, next, load);
    }

    fn enter(&mut self, now_us: u64, stage: Stage, load: LoadView) {
        self.stage = stage;
        let (low, high) = self.levels();
        self.limit = match stage {
            Stage::Rest | Stage::ClimbSettle | Stage::ClimbMeasure => self.high(),
            Stage::LowSettle | Stage::LowMeasure => low,
            Stage::HighSettle | Stage::HighMeasure => high,
        };
        // Calls that began together end together, for some rounds.
        let spread = if self.is_wide { 1 } else { 6 };
        let measure_us =
            (CALLS.max(spread * u64::from(high)) * load.gap_us).clamp(MEASURE_US.0, MEASURE_US.1);
        let length_us = match stage {
            Stage::Rest => u64::MAX - now_us,
            // As long as a call takes: by then the level has its own mix of calls.
            Stage::ClimbSettle => (u64::from(self.limit) * load.gap_us).min(CLIMB_US_MAX),
            Stage::ClimbMeasure => (CLIMB_CALLS * load.gap_us).clamp(MEASURE_US.0, CLIMB_US_MAX),
            Stage::LowSettle => (u64::from(high) * load.gap_us * 3 / 2).min(MEASURE_US.1),
            Stage::HighSettle => (u64::from(low) * load.gap_us * 3 / 2).min(MEASURE_US.1),
            Stage::HighMeasure if self.estimates >= KNOWN => measure_us * 3,
            Stage::LowMeasure | Stage::HighMeasure => measure_us,
        };
        (self.stage_start_us, self.stage_end_us) = (now_us, now_us + length_us);
        self.meter = Meter { last_us: now_us, ..Meter::default() };
    }

    /// Doubles the limit, unless it is no longer what requests wait for or the last doubling
    /// brought less than half as much more throughput.
    fn climb(&mut self) -> Stage {
        if self.meter.is_failing() {
            self.back_off();
            return Stage::Rest;
        }
        let Some(rate) = self.meter.rate().filter(|_| self.meter.is_full()) else {
            return Stage::Rest;
        };
        let (level, call_us) = (self.limit, self.meter.call_us());
        if self.rest_call_us > 0 && call_us > CALL_RATIO_MAX * self.rest_call_us {
            self.is_found = true;
            self.set_knee((self.meter.in_flight() * self.rest_call_us / call_us).max(SCALE));
            // The estimate is good enough to begin with the high level, while the queue of the
            // upstream drains.
            self.is_wide = false;
            return Stage::HighSettle;
        }
        if let Some((low, low_rate)) = self.climbed {
            let (low, level) = (u64::from(low), u64::from(level));
            // (rate / low_rate - 1) < (level / low - 1) / 2
            if 2 * rate * low < low_rate * (low + level) {
                self.is_found = true;
                self.set_knee((low * SCALE * rate / low_rate.max(1)).min(level * SCALE));
                return Stage::LowSettle;
            }
        }
        self.climbed = Some((level, rate));
        if level >= self.max {
            self.is_found = true;
            return Stage::LowSettle;
        }
        self.set_high_level(level.saturating_mul(2).min(self.max));
        Stage::ClimbSettle
    }

    /// Sets the knee whose limit is `level`.
    fn set_high_level(&mut self, level: u32) {
        // The knee `k` with `k + sqrt(k) = level`, in parts of a request.
        let level = u64::from(level) * SCALE;
        let root = ((4 * level + SCALE) * SCALE).isqrt() - SCALE;
        self.set_knee(root * root / (4 * SCALE));
        self.high_level = round(level).clamp(self.min, self.max);
    }

    /// Learns from a low and a high level.
    fn learn(&mut self) {
        let (low, high) = (self.low, self.high);
        let mut both = low;
        both.add(&high);
        if both.is_failing() {
            return self.back_off();
        }
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
    fn notice_change(&mut self) -> bool {
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
    /// What chance may explain of each estimate, and of all together.
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

impl Meter {
    #[inline]
    fn advance(&mut self, now_us: u64, in_flight: u32, limit: u32) {
        let passed_us = now_us.saturating_sub(self.last_us);
        self.in_flight_us += passed_us * u64::from(in_flight);
        if in_flight >= limit {
            self.full_us += passed_us;
        }
        self.length_us += passed_us;
        self.last_us = self.last_us.max(now_us);
    }

    fn add(&mut self, part: &Self) {
        self.length_us += part.length_us;
        self.in_flight_us += part.in_flight_us;
        self.full_us += part.full_us;
        self.completed += part.completed;
        self.overloaded += part.overloaded;
    }

    /// Calls in 2^20 us, times 256.
    fn rate(&self) -> Option<u64> {
        (self.completed >= CALLS / 8).then(|| (self.completed << 28) / self.length_us.max(1))
    }

    /// Mean time of a call, by Little's law.
    fn call_us(&self) -> u64 {
        self.in_flight_us / self.completed.max(1)
    }

    /// Mean requests in flight, times [`SCALE`].
    fn in_flight(&self) -> u64 {
        self.in_flight_us * SCALE / self.length_us.max(1)
    }

    /// Whether so many calls failed that it is no accident.
    fn is_failing(&self) -> bool {
        self.overloaded >= 4 && self.overloaded * 8 >= self.completed
    }

    /// Whether the limit, and not the load, decided how many were in flight.
    fn is_full(&self) -> bool {
        self.full_us * 10 >= self.length_us * 8
    }
}

fn round(scaled: u64) -> u32 {
    ((scaled + SCALE / 2) / SCALE) as u32
}
