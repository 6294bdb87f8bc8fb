//! The order level: with more requests than this in flight, calls only queue inside the upstream,
//! where important ones cannot overtake. So less important requests wait here, by class.
//!
//! Until the first overload the limit is a guess, far above the knee. Calls that take longer than
//! the fastest ones hint at a queue, and a probe decides: less important requests wait at half as
//! many in flight. If calls queue, as many end as before. If they have only become slower, as many
//! fewer end. The probe halves its level while the throughput holds, and the order level is twice
//! the knee that it finds, so chance hardly ever makes it too low. A request that waits for too
//! long passes, as long as fewer than the limit are in flight.

use super::meter::EVIDENCE;
use super::{CALLS, LimitController, Meter, SCALE, SearchStage, round};

/// No level: no request waits for order.
pub(in super::super) const UNORDERED: u32 = u32::MAX;
/// Calls that take this many quarters of the time of the fastest ones may be queued.
const QUEUED_QUARTERS: u64 = 10;
/// Bounds within which order is worth the cost of a wait: the least time of a call, and the time
/// between the ends of two calls (100 to 5,000 calls a second).
const CALL_US_MIN: u64 = 1_000;
const GAP_US: std::ops::RangeInclusive<u64> = 200..=10_000;
/// Calls over which the time of the fastest calls is taken, and that decide on a probe.
const FASTEST_CALLS: u64 = 4 * CALLS;
const SUSPECT_CALLS: u64 = 2 * CALLS;
/// The most calls of a probe.
const PROBE_CALLS: u64 = 4 * CALLS;
/// The lowest level that a probe halves, in parts of a request.
const LOW_MIN: u64 = 4 * SCALE;
/// Requests that a probe may add to those in flight and in the queue: at most four times as many
/// as were in flight, and at most this many.
const PROBE_REQUESTS: u32 = 2 * CALLS as u32;
/// The longest time for which a level drains or is measured.
const PROBE_US_MAX: u64 = 2_000_000;
/// The time from a probe that failed to the next one: doubles each time.
const PAUSE_US: (u64, u64) = (1_000_000, 60_000_000);
/// A level that is reached is probed again so often. One that is not is forgotten after a while.
const VERIFY_US: u64 = 4_000_000;
const FORGET_US: u64 = 60_000_000;
/// Without a level, the time of the fastest calls fades in 2^26 us (67 s).
const FADE_BITS: u32 = 26;
/// Classes count as present for one to two such periods after a request.
const PRESENT_US: u64 = 5_000_000;
/// The mean of requests per tick, times 256, above which requests came lately.
const OFFERED_MIN: u64 = 4;

/// Finds the order level, once a tick.
#[derive(Debug)]
pub(super) struct OrderLevel {
    /// The level in force, or that of the probe.
    level: u32,
    /// The level to return to.
    verified: u32,
    stage: ProbeStage,
    /// All measurements so far when the stage began.
    start: Meter,
    /// The measurements at the level before that of the probe.
    before: Meter,
    /// Requests in flight and in the queue that end a probe.
    requests_max: u32,
    /// Whether a level of this probe had the throughput of the one before.
    is_descending: bool,
    fastest: Meter,
    /// The shortest mean time of a call; 0 is unknown.
    fastest_us: u64,
    /// Whether a probe has seen that calls of this time do not queue.
    is_proven: bool,
    /// The mean throughput at the level in force.
    full_rate: u64,
    next_probe_us: u64,
    pause_us: u64,
    /// Classes with requests in this period and in the last one: a bit for each.
    classes: [u16; 2],
    classes_end_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeStage {
    Watch,
    Drain,
    Measure,
}

impl LimitController {
    /// Moves the order level once a tick, and returns it. `offered` are the requests offered
    /// lately, by class: if all have one class, there is nothing to order.
    pub(in super::super) fn order_level(
        &mut self,
        is_wanted: bool,
        offered: &[u64],
        (in_flight, waiting): (u32, usize),
    ) -> u32 {
        let total = self.total();
        let order = &mut self.order;
        let is_mixed = order.is_mixed(offered, total.last_us);
        if !is_wanted || !is_mixed || self.is_found || self.stage != SearchStage::Rest {
            order.step_aside(total);
            return UNORDERED;
        }
        // A climb must know these calls for what they are: they wait for as long as they work.
        self.rest_call_us = order.call_us(&total.since(&order.start)).unwrap_or(self.rest_call_us);
        order.tick(total, in_flight, waiting as u32);
        match order.level {
            level if level < self.limit => level,
            _ => UNORDERED,
        }
    }

    /// Measures again after this node stood still.
    pub(in super::super) fn interrupt_order(&mut self) {
        self.order.start = self.total();
    }
}

impl OrderLevel {
    pub(super) fn new() -> Self {
        Self {
            level: UNORDERED,
            verified: UNORDERED,
            stage: ProbeStage::Watch,
            start: Meter::default(),
            before: Meter::default(),
            requests_max: 0,
            is_descending: false,
            fastest: Meter::default(),
            fastest_us: 0,
            is_proven: false,
            full_rate: 0,
            next_probe_us: 0,
            pause_us: PAUSE_US.0,
            classes: [0; 2],
            classes_end_us: 0,
        }
    }

    /// Whether requests of several classes came in the last seconds.
    fn is_mixed(&mut self, offered: &[u64], now_us: u64) -> bool {
        if now_us >= self.classes_end_us {
            self.classes = [0, self.classes[0]];
            self.classes_end_us = now_us + PRESENT_US;
        }
        let present = offered.iter().map(|&offered| u16::from(offered >= OFFERED_MIN));
        self.classes[0] |= present.zip(0..).fold(0, |all, (is_in, class)| all | is_in << class);
        (self.classes[0] | self.classes[1]).count_ones() > 1
    }

    /// The time of a call at the level in force, by Little's law, if the level is reached.
    fn call_us(&self, window: &Meter) -> Option<u64> {
        let is_known = self.stage == ProbeStage::Watch && self.is_reached(window);
        (is_known && window.completed >= CALLS / 4).then(|| u64::from(self.level) * window.gap_us())
    }

    fn is_reached(&self, window: &Meter) -> bool {
        window.in_flight() * 8 >= u64::from(self.level) * SCALE * 7
    }

    /// Moves the level. `total` has all measurements so far.
    fn tick(&mut self, total: Meter, in_flight: u32, waiting: u32) {
        let window = total.since(&self.start);
        let requests = in_flight + waiting;
        match self.stage {
            ProbeStage::Watch if window.completed >= CALLS => {
                let most = PROBE_REQUESTS.min(4 * round(window.in_flight()));
                (self.start, self.requests_max) = (total, requests + most);
                self.watch(window, total);
            }
            ProbeStage::Watch if window.length_us > PROBE_US_MAX => self.start = total,
            ProbeStage::Watch => {}
            _ if requests > self.requests_max => self.fail(total),
            ProbeStage::Drain if in_flight <= self.level + self.level / 4 => {
                self.enter(ProbeStage::Measure, total);
            }
            ProbeStage::Drain if window.length_us > self.drain_us() => {
                // Requests that waited for too long have passed, or calls that do not end keep
                // slots.
                match window.rate() >= self.before.rate().map(|rate| rate * 3 / 4) {
                    true => self.step_aside(total),
                    false => self.fail(total),
                }
            }
            ProbeStage::Drain => {}
            ProbeStage::Measure => self.measure(window, total),
        }
    }

    fn enter(&mut self, stage: ProbeStage, total: Meter) {
        if stage == ProbeStage::Watch {
            (self.before, self.fastest) = (Meter::default(), Meter::default());
            self.is_descending = false;
        }
        (self.stage, self.start) = (stage, total);
    }

    /// Twice the time in which the calls above the level end.
    fn drain_us(&self) -> u64 {
        (2 * self.before.in_flight() / SCALE * self.before.gap_us()).min(PROBE_US_MAX)
    }

    /// Learns from 64 calls, and begins a probe if it is time.
    fn watch(&mut self, window: Meter, total: Meter) {
        self.learn_fastest(&window);
        let now_us = total.last_us;
        if self.level != UNORDERED && now_us > self.next_probe_us + FORGET_US {
            self.forget();
        }
        let is_suspect = match self.level {
            UNORDERED => self.is_queued(&window),
            _ => self.is_reached(&window),
        };
        if !is_suspect {
            self.before = Meter::default();
            return;
        }
        self.before.add(&window);
        if self.before.completed < SUSPECT_CALLS {
            return;
        }
        let before = std::mem::take(&mut self.before);
        if self.level != UNORDERED && self.notice_change(&before) || now_us < self.next_probe_us {
            return;
        }
        let low = match self.level {
            UNORDERED => before.in_flight() / 2,
            // A level that is right leaves no worker idle.
            level => u64::from(level) * SCALE * 5 / 8,
        };
        self.descend(before, low, total);
    }

    /// Whether calls take so long that they may be queued, where order is worth its cost.
    fn is_queued(&self, window: &Meter) -> bool {
        let is_worth = self.fastest_us >= CALL_US_MIN && GAP_US.contains(&window.gap_us());
        is_worth && 4 * window.call_us() >= QUEUED_QUARTERS * self.fastest_us
    }

    fn learn_fastest(&mut self, window: &Meter) {
        self.fastest.add(window);
        if self.fastest_us > 0 && self.fastest.completed < FASTEST_CALLS {
            return;
        }
        let Meter { length_us, .. } = self.fastest;
        let call_us = self.fastest.call_us();
        let faded_us = match self.level {
            UNORDERED => (self.fastest_us * length_us.min(1 << FADE_BITS)) >> FADE_BITS,
            _ => 0,
        };
        self.fastest_us = match self.fastest_us {
            0 => call_us,
            fastest_us => call_us.min(fastest_us - faded_us),
        };
        self.fastest = Meter::default();
    }

    /// Moves the level in force if the upstream has changed.
    fn notice_change(&mut self, before: &Meter) -> bool {
        let rate = before.rate().unwrap_or(0);
        let is_idle = 4 * before.call_us() < 5 * self.fastest_us;
        if is_idle {
            // Calls at this level do not queue.
            self.verified = self.level.saturating_add(self.level / 2);
            self.level = self.verified;
        } else if rate * 8 < self.full_rate * 5 {
            // Workers left, or calls have become slower.
            self.forget();
            return true;
        }
        self.full_rate = (7 * self.full_rate + rate) / 8;
        is_idle
    }

    fn forget(&mut self) {
        (self.level, self.verified) = (UNORDERED, UNORDERED);
    }

    /// Probes a level, in parts of a request.
    fn descend(&mut self, before: Meter, low: u64, total: Meter) {
        (self.before, self.level) = (before, round(low).max(1));
        self.enter(ProbeStage::Drain, total);
    }

    /// Decides a level of a probe by the number of calls that end.
    fn measure(&mut self, window: Meter, total: Meter) {
        let before = self.before;
        let (low, high) = (window.in_flight(), before.in_flight().max(1));
        let (evidence, queued) = (window.queue_evidence(&before), window.calls_at_rate_of(&before));
        let is_decided = match self.is_descending {
            // The knee is estimated here, from as many calls.
            true => window.completed >= 2 * CALLS || evidence <= -EVIDENCE,
            false => window.completed >= CALLS && evidence.abs() >= EVIDENCE,
        };
        let is_over = window.completed >= PROBE_CALLS || window.length_us >= PROBE_US_MAX;
        if !is_decided && !is_over {
            return;
        }
        if !self.is_reached(&window) {
            // The load was too small to fill the level.
            return self.step_aside(total);
        }
        let call_us = window.call_us();
        if evidence < 0 && !self.is_descending {
            self.is_proven = true;
            return self.deny(call_us, total);
        }
        if self.verified == UNORDERED {
            self.full_rate = before.rate().unwrap_or(0);
        }
        if self.verified == UNORDERED || self.is_descending {
            // By Little's law, if workers were idle at the low level.
            let knee = low * queued.max(window.completed) / window.completed.max(1);
            self.verified = round(2 * knee.min(high));
        }
        self.fastest_us = self.fastest_us.min(call_us);
        if self.is_descending && window.completed * 8 < queued * 7 {
            (self.fastest_us, self.is_proven) = (call_us, true);
        } else if low >= LOW_MIN && (!self.is_proven || call_us > 2 * self.fastest_us) {
            self.is_descending = true;
            return self.descend(window, low / 2, total);
        }
        self.accept(total);
    }

    /// Puts the verified level in force.
    fn accept(&mut self, total: Meter) {
        self.level = self.verified;
        self.pause_us = PAUSE_US.0;
        self.next_probe_us = total.last_us + VERIFY_US;
        self.enter(ProbeStage::Watch, total);
    }

    /// Ends a probe without a result.
    fn step_aside(&mut self, total: Meter) {
        if self.is_descending {
            return self.accept(total);
        }
        self.level = self.verified;
        self.next_probe_us = self.next_probe_us.max(total.last_us + PAUSE_US.0 / 2);
        self.enter(ProbeStage::Watch, total);
    }

    /// Ends a probe that costs too much.
    fn fail(&mut self, total: Meter) {
        // The next probe comes when calls take longer still.
        self.deny(self.before.call_us() / 2, total);
    }

    /// Raises or drops a level at which fewer calls end. Calls of `call_us` do not queue.
    fn deny(&mut self, call_us: u64, total: Meter) {
        if self.is_descending {
            return self.accept(total);
        }
        self.fastest_us = self.fastest_us.max(call_us);
        self.next_probe_us = total.last_us;
        if self.verified == UNORDERED {
            self.next_probe_us += self.pause_us;
            self.pause_us = (self.pause_us * 2).min(PAUSE_US.1);
        }
        self.verified = self.verified.saturating_mul(2);
        self.level = self.verified;
        self.enter(ProbeStage::Watch, total);
    }
}
