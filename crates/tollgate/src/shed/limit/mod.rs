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
//! throughput, and then the two levels are compared. If calls take three times as long as before
//! any request waited, by Little's law the knee is at a third. A check at that level tells whether
//! calls queue: if they have only become slower, the throughput falls, and the climb goes on.

mod climb;
mod errors;
mod meter;
mod order;
mod outage;
mod search;
#[cfg(test)]
mod tests;

use climb::{CLIMB_CALLS, CLIMB_US_MAX};
use errors::ErrorTolerance;
use meter::Meter;
use order::OrderLevel;
use search::Drift;

pub(super) use order::UNORDERED;

/// The knee is kept in parts of a request.
const SCALE: u64 = 256;
/// Calls that a level completes while it is measured.
const CALLS: u64 = 64;
/// Parts of the high level, each three times as long, once the knee is known.
const HIGH_PARTS: u32 = 8;
/// How often a level settles again if it does not fill, or drain.
const REFILLS_MAX: u32 = 4;
/// Estimates until the knee counts as known.
const KNOWN: u32 = 8;
/// The time for which a limit counts as new after a climb.
const NEW_US: u64 = 2_000_000;
/// The shortest and longest time for which a level is measured.
const MEASURE_US: (u64, u64) = (10_000, 2_000_000);

/// Finds the limit. Time and requests in flight are arguments.
#[derive(Debug)]
pub(super) struct LimitController {
    min: u32,
    max: u32,
    /// Times [`SCALE`].
    knee: u64,
    /// The limit without probing. It follows the knee and the bounds.
    high_level: u32,
    limit: u32,
    stage: SearchStage,
    stage_start_us: u64,
    stage_end_us: u64,
    meter: Meter,
    /// All measurements before those in `meter`.
    total: Meter,
    low: Meter,
    high: Meter,
    /// Parts of the high level, or of a check, so far.
    parts: u32,
    /// How often a level has settled without being reached.
    refills: u32,
    /// Whether requests filled the high level while it settled.
    is_filled: bool,
    /// Estimates since the search began.
    estimates: u32,
    /// Whether the last estimate was at an edge of its range: the knee is further away.
    is_wide: bool,
    drift: Drift,
    /// Estimates at the low edge, less others.
    low_edges: u32,
    errors: ErrorTolerance,
    /// Whether the limit climbed to a level that brought no more throughput.
    is_found: bool,
    climb_end_us: Option<u64>,
    /// The level with which a level of the climb is compared, and its throughput.
    climbed: Option<(u32, u64)>,
    /// Evidence of a check for a queue in the upstream: completed calls, times 256.
    evidence: i64,
    /// Mean time of a call while no request waited; 0 is unknown.
    rest_call_us: u64,
    /// Throughput at the high level: calls in 2^20 us, times 256; 0 is unknown.
    reference: u64,
    /// Calls on which the reference rests.
    reference_calls: u64,
    shift: Drift,
    order: OrderLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchStage {
    /// The upstream keeps up, or the load is too small to learn from.
    Rest,
    ClimbSettle,
    ClimbMeasure,
    CheckSettle,
    CheckMeasure,
    LowSettle,
    LowMeasure,
    HighSettle,
    HighMeasure,
}

/// The load, as the controller sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadView {
    pub(super) is_overloaded: bool,
    /// Whether requests wait for the limit.
    pub(super) is_waiting: bool,
    pub(super) in_flight: u32,
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
            stage: SearchStage::Rest,
            stage_start_us: 0,
            stage_end_us: u64::MAX,
            meter: Meter::default(),
            total: Meter::default(),
            low: Meter::default(),
            high: Meter::default(),
            parts: 0,
            refills: 0,
            is_filled: false,
            estimates: 0,
            is_wide: true,
            drift: Drift::default(),
            low_edges: 0,
            errors: ErrorTolerance::default(),
            is_found: false,
            climb_end_us: None,
            climbed: None,
            evidence: 0,
            rest_call_us: 0,
            reference: 0,
            reference_calls: 0,
            shift: Drift::default(),
            order: OrderLevel::new(),
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

    /// The limit for requests that do not pay for the low level.
    pub(super) fn spared(&self) -> u32 {
        match self.stage {
            SearchStage::LowSettle | SearchStage::LowMeasure => self.levels().1,
            _ => self.limit,
        }
    }

    /// Whether the search has found the knee, and only watches it.
    pub(super) fn is_known(&self) -> bool {
        self.estimates >= KNOWN && !self.is_wide
    }

    /// Whether the limit is a guess that may still double.
    #[inline]
    pub(super) fn is_climbing(&self) -> bool {
        matches!(
            self.stage,
            SearchStage::ClimbSettle
                | SearchStage::ClimbMeasure
                | SearchStage::CheckSettle
                | SearchStage::CheckMeasure
        )
    }

    /// Whether a climb has ended lately, and the search may not have come to rest.
    pub(super) fn is_new(&self, now_us: u64) -> bool {
        self.climb_end_us.is_some_and(|end_us| now_us < end_us + NEW_US)
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
        // A search at the lowest level must see a higher one.
        let high = high.max(self.min + u32::from(self.is_wide)).min(self.ceiling());
        let low = round(low).clamp(self.min, self.max);
        (low.min(high - u32::from(high > self.min)), high)
    }

    #[inline]
    pub(super) fn is_stage_over(&self, now_us: u64) -> bool {
        now_us >= self.stage_end_us
    }

    /// The time of the last event.
    #[inline]
    pub(super) fn now_us(&self) -> u64 {
        self.meter.last_us
    }

    /// Adds the time since the last event, and returns it. Time never runs backwards here.
    #[inline]
    pub(super) fn advance(&mut self, now_us: u64, in_flight: u32) -> u64 {
        self.meter.advance(now_us, in_flight, self.limit)
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

    /// Counts a call whose client left.
    pub(super) fn abandoned(&mut self) {
        self.meter.abandoned += 1;
    }

    /// Begins to learn when overload begins; called once a tick.
    pub(super) fn start(&mut self, now_us: u64, load: LoadView) {
        if self.stage != SearchStage::Rest {
            return;
        }
        if !self.is_found && load.is_waiting && self.high_level < self.ceiling() {
            // If the last level did not fill, this one is compared with the level below it, unless
            // that is long ago: at a load of one, chance alone makes requests wait.
            let fill_us = 2 * u64::from(self.high_level) * load.gap_us;
            if self.climb_end_us.is_none_or(|end_us| now_us > end_us + fill_us) {
                self.climbed = None;
            }
            // A level settles for a call, unless its length is known from before.
            let known = self.rest_call_us > 0;
            let stage = if known { SearchStage::ClimbMeasure } else { SearchStage::ClimbSettle };
            return self.enter(now_us, stage, load);
        }
        if load.is_overloaded && load.is_waiting {
            self.high = Meter::default();
            return self.enter(now_us, SearchStage::LowSettle, load);
        }
        if self.is_failing(&self.meter) {
            self.back_off(self.meter);
            self.enter(now_us, SearchStage::Rest, load);
        } else if self.meter.completed >= CALLS {
            let meter = self.meter;
            self.endure(&meter);
            if self.meter.full_us == 0 {
                let (mean_us, call_us) = (self.rest_call_us, self.meter.call_us());
                self.rest_call_us =
                    if mean_us == 0 { call_us } else { (3 * mean_us + call_us) / 4 };
            }
            self.restart_meter(now_us);
        }
    }

    /// Forgets the stage, which was interrupted, and lets its level settle again.
    pub(super) fn interrupt(&mut self, now_us: u64, load: LoadView) {
        let again = match self.stage {
            SearchStage::Rest => SearchStage::Rest,
            SearchStage::ClimbSettle | SearchStage::ClimbMeasure => SearchStage::ClimbSettle,
            SearchStage::CheckSettle | SearchStage::CheckMeasure => SearchStage::CheckSettle,
            SearchStage::LowSettle | SearchStage::LowMeasure => SearchStage::LowSettle,
            SearchStage::HighSettle | SearchStage::HighMeasure => SearchStage::HighSettle,
        };
        self.enter(now_us, again, load);
    }

    /// Ends a stage whose time is over.
    pub(super) fn next_stage(&mut self, now_us: u64, load: LoadView) {
        let end_us = self.stage_end_us.min(now_us);
        let settles_on = self.refills < REFILLS_MAX;
        let is_filling = self.meter.full_us == 0 && settles_on;
        // An overload that has ended needs no low level.
        let is_wanted = load.is_overloaded || self.is_climbing();
        let is_draining = load.in_flight > self.limit + self.limit / 2 && settles_on && is_wanted;
        let next = match self.stage {
            // Requests fill a higher level as fast as they come. Meanwhile none is in excess, which
            // is no end of the overload.
            stage @ (SearchStage::ClimbSettle | SearchStage::HighSettle) if is_filling => {
                self.refills += 1;
                return self.enter(now_us, stage, load);
            }
            SearchStage::ClimbSettle => SearchStage::ClimbMeasure,
            SearchStage::ClimbMeasure if self.is_vague() => {
                self.stage_end_us = now_us + self.meter.length_us;
                return;
            }
            SearchStage::ClimbMeasure => {
                self.climb_end_us = Some(end_us);
                self.climb()
            }
            stage @ (SearchStage::CheckSettle | SearchStage::LowSettle) if is_draining => {
                self.refills += 1;
                return self.enter(now_us, stage, load);
            }
            SearchStage::CheckSettle => SearchStage::CheckMeasure,
            SearchStage::CheckMeasure => {
                self.climb_end_us = Some(end_us);
                self.check()
            }
            _ if !load.is_overloaded => SearchStage::Rest,
            SearchStage::Rest => SearchStage::Rest,
            SearchStage::LowSettle => SearchStage::LowMeasure,
            SearchStage::LowMeasure => {
                self.low = self.meter;
                match self.descend() {
                    true => SearchStage::LowSettle,
                    false => {
                        (self.high, self.parts) = (Meter::default(), 0);
                        SearchStage::HighSettle
                    }
                }
            }
            SearchStage::HighSettle => {
                self.is_filled = self.meter.full_us > 0;
                SearchStage::HighMeasure
            }
            SearchStage::HighMeasure => {
                self.high.add(&self.meter);
                self.parts += 1;
                self.notice_change();
                match self.is_known() && self.parts < HIGH_PARTS && !self.is_enough() {
                    true => SearchStage::HighMeasure,
                    false => self.learn(),
                }
            }
        };
        self.refills = 0;
        self.enter(now_us, next, load);
    }

    fn enter(&mut self, now_us: u64, stage: SearchStage, load: LoadView) {
        self.stage = stage;
        let (low, high) = self.levels();
        self.limit = match stage {
            SearchStage::LowSettle | SearchStage::LowMeasure => low,
            SearchStage::HighSettle | SearchStage::HighMeasure => high,
            _ => self.high(),
        };
        // Calls that began together end together, for some rounds.
        let spread = if self.is_wide { 1 } else { 6 };
        let calls = if self.is_known() { CALLS } else { 2 * CALLS };
        let measure_us =
            (calls.max(spread * u64::from(high)) * load.gap_us).clamp(MEASURE_US.0, MEASURE_US.1);
        let length_us = match stage {
            SearchStage::Rest => u64::MAX - now_us,
            // The duration of a call: afterwards the level has its own mix of calls.
            SearchStage::ClimbSettle => (u64::from(self.limit) * load.gap_us).min(CLIMB_US_MAX),
            SearchStage::ClimbMeasure => {
                (CLIMB_CALLS * load.gap_us).clamp(MEASURE_US.0, MEASURE_US.1)
            }
            SearchStage::CheckSettle => {
                let excess = load.in_flight.saturating_sub(self.limit);
                (u64::from(excess) * self.high.gap_us()).min(CLIMB_US_MAX)
            }
            SearchStage::CheckMeasure => {
                (CLIMB_CALLS * self.high.gap_us()).clamp(MEASURE_US.0, MEASURE_US.1)
            }
            SearchStage::LowSettle => (u64::from(high) * load.gap_us * 3 / 2).min(MEASURE_US.1),
            SearchStage::HighSettle => (u64::from(low) * load.gap_us * 3 / 2).min(MEASURE_US.1),
            SearchStage::HighMeasure if self.is_known() => measure_us * 3,
            SearchStage::LowMeasure | SearchStage::HighMeasure => measure_us,
        };
        (self.stage_start_us, self.stage_end_us) = (now_us, now_us + length_us);
        self.restart_meter(now_us);
    }
}

fn round(scaled: u64) -> u32 {
    ((scaled + SCALE / 2) / SCALE) as u32
}
