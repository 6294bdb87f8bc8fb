//! The shedder without threads: every step takes the time and returns what to do.

use super::abandoned::AbandonedCalls;
use super::demand::Demand;
use super::fair::{CERTAIN, FairShare, FairStanding};
use super::limit::{LimitController, LoadView, UNORDERED};
use super::queue::{Lane, QueueEntryId, QueueEntryState, WaitingRoom};
use super::snapshot::{ClassCounts, ShedSnapshot};
use super::threshold::{STEPS, Threshold};
use super::types::{
    AdaptiveSettings, CLASSES_MAX, ShedReason, ShedRefusal, ShedRequest, UpstreamOutcome,
};
use std::task::Waker;

/// A node with requests that wait, to which nothing happens for longer than this, and than these
/// calls take to end, stood still itself.
const HOLE_US: u64 = 25_000;
const HOLE_CALLS: u64 = 8;
/// The limit of a new shedder, inside its bounds.
pub(super) const START: u32 = 64;
/// The longest wait while the upstream keeps up.
const WAIT_US: u64 = 220_000;
/// The longest wait for order, if the upstream would take the request.
const ORDER_WAIT_US: u64 = 750_000;
/// The longest wait while the limit is a guess that may still double.
const CLIMB_WAIT_US: u64 = 1_000_000;
/// The longest wait in a class that enters whole while others are shed.
const OVERLOAD_WAIT_US: u64 = 90_000;
/// Requests wait at least as long as the upstream takes for so many calls, up to this time.
const WAIT_CALLS: u32 = 6;
const SLOW_WAIT_US: u64 = 400_000;
/// Bounds of the longest wait in the class that is being shed: half a call, within these.
const LATE_WAIT_US: (u64, u64) = (10_000, WAIT_US);
/// The queue holds so many times the highest limit.
const QUEUE_RATIO: usize = 8;
/// Clients share what the upstream completes and a part of it, so that chance takes nothing from
/// those inside their shares. Overload means more than that part.
const CUSHION: u64 = 16;
const RETRY_US: (u64, u64) = (1_000_000, 2_000_000);

/// The state of one shedder.
#[derive(Debug)]
pub(super) struct ShedderState {
    settings: AdaptiveSettings,
    limit: LimitController,
    demand: Demand,
    threshold: Threshold,
    /// Whether classes that enter whole exceed the low level of the search.
    is_sparing: bool,
    /// Fair shares, by class.
    fair: Vec<FairShare>,
    pub(super) room: WaitingRoom,
    in_flight: u32,
    /// Requests below the first class wait for order while so many are in flight.
    order_level: u32,
    /// The last time at which requests waited for order, and not for the limit.
    ordered_us: u64,
    /// Abandoned calls, which count as in flight.
    abandoned: AbandonedCalls,
    classes: [ClassCounts; CLASSES_MAX as usize],
    random: u64,
}

/// A request that was admitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdmittedCall {
    pub(super) class: u8,
    pub(super) admitted_us: u64,
}

/// The result of entering for a request that is not admitted at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaterStep {
    Wait(QueueEntryId),
    Shed(ShedReason),
}

impl ShedderState {
    pub(super) fn new(settings: AdaptiveSettings, start: u32, seed: u64) -> Self {
        let AdaptiveSettings { min, max, classes, .. } = settings;
        Self {
            settings,
            limit: LimitController::new(min, max, start.clamp(min, max)),
            demand: Demand::new(classes),
            threshold: Threshold::new(classes),
            is_sparing: false,
            fair: (0..classes).map(|_| FairShare::new()).collect(),
            room: WaitingRoom::new(classes, max as usize * QUEUE_RATIO),
            in_flight: 0,
            order_level: UNORDERED,
            ordered_us: 0,
            abandoned: AbandonedCalls::new(),
            classes: Default::default(),
            random: seed | 1,
        }
    }

    /// Takes new settings, and keeps what was learnt.
    pub(super) fn update(&mut self, settings: AdaptiveSettings) {
        let AdaptiveSettings { min, max, classes, .. } = settings;
        self.limit.set_bounds(min, max);
        self.room.set_classes(classes, max as usize * QUEUE_RATIO);
        if classes != self.settings.classes {
            self.demand.set_classes(classes);
            self.threshold.set_classes(classes);
            self.fair.resize_with(classes.into(), FairShare::new);
            self.classes[usize::from(classes)..].fill(ClassCounts::default());
        }
        self.settings = settings;
    }

    /// Lets a request enter. Returns `None` if it is admitted at once.
    #[inline]
    pub(super) fn enter(&mut self, now_us: u64, request: ShedRequest) -> Option<LaterStep> {
        let now_us = self.advance(now_us);
        let class = self.class(request.class);
        self.counts(class).offered += 1;
        let standing = match self.threshold.is_open() {
            true => FairStanding::Beyond,
            false => self.standing(class, request.client),
        };
        if self.in_flight < self.level_of(class) && self.room.len() == 0 {
            self.admit(class);
            return None;
        }
        self.enter_queue(now_us, class, standing)
    }

    #[inline(never)]
    fn enter_queue(&mut self, now_us: u64, class: u8, standing: FairStanding) -> Option<LaterStep> {
        if class == 0 && self.is_ordering() && self.room.first_class() != Some(0) {
            self.admit(class);
            return None;
        }
        Some(self.queue_or_shed(now_us, class, standing))
    }

    fn queue_or_shed(&mut self, now_us: u64, class: u8, standing: FairStanding) -> LaterStep {
        if standing == FairStanding::Refused {
            return self.shed(class, ShedReason::Adaptive);
        }
        if self.room.is_full() {
            return self.shed(class, ShedReason::Queue);
        }
        let is_inside = standing == FairStanding::Inside;
        LaterStep::Wait(self.room.push(Lane { class, is_inside }, now_us))
    }

    /// The requests in flight below which a request of `class` enters.
    #[inline]
    fn level_of(&self, class: u8) -> u32 {
        match class {
            0 => self.limit.limit(),
            _ => self.limit.limit().min(self.order_level),
        }
    }

    /// Whether requests that wait do so for order, and not for the limit.
    fn is_ordering(&self) -> bool {
        self.order_level != UNORDERED && self.in_flight < self.limit.limit()
    }

    /// Ends a call, which may have ended at the upstream before this is known.
    #[inline]
    pub(super) fn finish(
        &mut self,
        now_us: u64,
        call: AdmittedCall,
        outcome: UpstreamOutcome,
        ended_us: u64,
    ) {
        let now_us = self.advance(now_us);
        match outcome {
            UpstreamOutcome::Ok => {
                self.abandoned.learn(ended_us.saturating_sub(call.admitted_us));
                self.limit.succeeded(call.admitted_us);
                self.completed(call.class, ended_us);
            }
            other => return self.finish_otherwise(now_us, call, other, ended_us),
        }
        if !self.abandoned.is_empty() {
            self.end_abandoned(call.admitted_us, ended_us);
        }
    }

    /// Ends a call that the upstream did not do.
    #[inline(never)]
    fn finish_otherwise(
        &mut self,
        now_us: u64,
        AdmittedCall { class, admitted_us }: AdmittedCall,
        outcome: UpstreamOutcome,
        ended_us: u64,
    ) {
        if outcome == UpstreamOutcome::Abandoned {
            let drains_us = self.demand.drains_us(self.in_flight);
            self.abandoned.push(class, admitted_us, now_us, drains_us);
            return self.limit.abandoned();
        }
        self.leave(class);
        if outcome == UpstreamOutcome::Overloaded {
            self.limit.completed(ended_us, true);
            self.limit.failed_after(ended_us.saturating_sub(admitted_us));
            self.demand.ended(self.limit.tolerates_errors());
            self.end_abandoned(admitted_us, ended_us);
        }
    }

    /// Ends the abandoned calls that are older than one that has ended.
    #[inline(never)]
    fn end_abandoned(&mut self, admitted_us: u64, ended_us: u64) {
        while let Some(class) = self.abandoned.pop_older(admitted_us) {
            self.completed(class, ended_us);
        }
    }

    /// Counts a call for which the upstream did its work.
    #[inline]
    fn completed(&mut self, class: u8, ended_us: u64) {
        self.leave(class);
        self.limit.completed(ended_us, false);
        self.demand.ended(true);
    }

    /// Frees a slot.
    #[inline]
    fn leave(&mut self, class: u8) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let class = self.class(class);
        let in_flight = &mut self.counts(class).in_flight;
        *in_flight = in_flight.saturating_sub(1);
    }

    /// Frees the slot of a call, or takes it again.
    pub(super) fn set_paused(&mut self, now_us: u64, class: u8, is_paused: bool) {
        self.advance(now_us);
        let class = self.class(class);
        let step = |count: u32| match is_paused {
            true => count.saturating_sub(1),
            false => count + 1,
        };
        self.in_flight = step(self.in_flight);
        let counts = self.counts(class);
        counts.in_flight = step(counts.in_flight);
    }

    /// Grants the next free slot, or sheds the next request that waited too long; returns `None`
    /// when nothing changes any more. The caller wakes the task.
    pub(super) fn resolve_next(&mut self) -> Option<Option<Waker>> {
        let now_us = self.limit.now_us();
        if self.room.len() == 0 {
            return None;
        }
        if self.is_ordering() {
            self.ordered_us = now_us;
        }
        if let Some((slot, class)) = self.next_late(now_us) {
            self.shed(class, ShedReason::Queue);
            return Some(self.room.resolve(slot, QueueEntryState::Shed(ShedReason::Queue)));
        }
        let lane = self.room.first_lane()?;
        let oldest = self.room.oldest(lane)?;
        // Last in, first out where most are shed anyway: those that are served did not wait. So it
        // is too where the limit climbs and clients that have waited for longer may leave.
        let waited_us = self.waited_us(oldest.1, now_us);
        if self.in_flight >= self.slots(lane, waited_us) {
            return None;
        }
        let (slot, entered_us) = match self.is_late(lane) || waited_us > WAIT_US {
            true => self.room.newest(lane)?,
            false => oldest,
        };
        Some(self.grant(slot, entered_us, now_us))
    }

    /// Admits a request that waited.
    fn grant(&mut self, slot: QueueEntryId, entered_us: u64, now_us: u64) -> Option<Waker> {
        let class = self.room.class(slot);
        self.admit(class);
        if !self.settings.is_shadow {
            self.counts(class).queue_us += now_us.saturating_sub(entered_us);
        }
        self.room.resolve(slot, QueueEntryState::Granted(now_us))
    }

    /// The limit for a request that has waited for so long. A class that enters whole does not pay
    /// for the search: after an eighth of its longest wait, the low level does not bind it.
    fn slots(&self, lane: Lane, waited_us: u64) -> u32 {
        match self.is_sparing && !self.threshold.is_last(lane.class) {
            true if waited_us > self.patience_us(OVERLOAD_WAIT_US) / 8 => self.limit.spared(),
            _ => self.level_of(lane.class),
        }
    }

    /// How long a request has waited for the limit.
    fn waited_us(&self, entered_us: u64, now_us: u64) -> u64 {
        now_us.saturating_sub(entered_us.max(self.ordered_us))
    }

    /// The longest that a request waits which enters now.
    pub(super) fn longest_wait_us(&self) -> u64 {
        match self.limit.is_climbing() {
            true => CLIMB_WAIT_US,
            false if self.order_level != UNORDERED => ORDER_WAIT_US,
            false => self.patience_us(WAIT_US),
        }
    }

    /// Ends the longest wait of a request: sheds it, or admits it if it waited for order.
    pub(super) fn expire(&mut self, slot: QueueEntryId) {
        if self.is_ordering() {
            self.grant(slot, self.room.entered_us(slot), self.limit.now_us());
            return;
        }
        self.shed(self.room.class(slot), ShedReason::Queue);
        self.room.resolve(slot, QueueEntryState::Shed(ShedReason::Queue));
    }

    /// Forgets a request whose owner left. It is no refusal.
    pub(super) fn abandon(&mut self, slot: QueueEntryId) {
        self.room.free(slot);
    }

    pub(super) fn refusal(&mut self, reason: ShedReason) -> ShedRefusal {
        let spread_us = (u64::from(self.random()) * RETRY_US.1) >> 32;
        ShedRefusal { reason, retry_after_us: RETRY_US.0 + spread_us }
    }

    pub(super) fn snapshot(&self) -> ShedSnapshot {
        ShedSnapshot {
            limit: self.limit.high(),
            in_flight: self.in_flight,
            waiting: self.room.len(),
            is_overloaded: self.demand.is_overloaded(),
            classes: self.classes[..usize::from(self.settings.classes)].to_vec(),
        }
    }

    /// Lets time pass. Threads may bring their times out of order.
    #[inline]
    fn advance(&mut self, now_us: u64) -> u64 {
        let now_us = self.limit.now_us().max(now_us);
        let passed_us = self.limit.advance(now_us, self.in_flight);
        if passed_us > HOLE_US {
            self.notice_hole(now_us, passed_us);
        }
        if self.demand.is_tick_over(now_us) || self.limit.is_stage_over(now_us) {
            self.end_periods(now_us);
        }
        now_us
    }

    /// Ends the tick and the stage of the search whose times are over.
    #[cold]
    fn end_periods(&mut self, now_us: u64) {
        if self.demand.is_tick_over(now_us) {
            self.tick(now_us);
        }
        if self.limit.is_stage_over(now_us) {
            let load = self.load();
            self.limit.next_stage(now_us, load);
        }
    }

    /// Measures again if this node stood still: what ended meanwhile is known too late.
    #[cold]
    fn notice_hole(&mut self, now_us: u64, hole_us: u64) {
        let load = self.load();
        if self.room.len() > 0 && hole_us > HOLE_US + HOLE_CALLS * load.gap_us {
            self.demand.skip(hole_us);
            self.limit.interrupt(now_us, load);
            self.limit.interrupt_order();
        }
    }

    fn tick(&mut self, now_us: u64) {
        while let Some(class) = self.abandoned.pop_expired(now_us) {
            self.leave(class);
        }
        let classes = &self.classes[..usize::from(self.settings.classes)];
        self.demand.tick(now_us, self.waiting(), classes.iter().map(|counts| counts.offered));
        let (completed, offered) = (self.demand.completed_mean(), self.demand.offered_mean());
        let sheds = self.demand.is_overloaded() && !self.limit.is_climbing();
        self.threshold.step(sheds, completed, offered);
        let whole = (0..self.settings.classes).zip(offered);
        let whole = whole.filter(|(class, _)| !self.threshold.is_last(*class));
        let whole = whole.map(|(_, offered)| offered).sum::<u64>();
        // If these classes alone fill the upstream, a search would see no low level.
        self.is_sparing = sheds && (self.limit.is_known() || whole * 4 <= completed * 3);
        let mut above = 0;
        for (class, (fair, &offered)) in self.fair.iter_mut().zip(offered).enumerate() {
            let wide =
                u64::from(self.threshold.open_steps(class as u8)) * CERTAIN / u64::from(STEPS);
            let narrow =
                (completed + completed / CUSHION).saturating_sub(above) * CERTAIN / offered.max(1);
            fair.tick(wide, if sheds { narrow } else { CERTAIN });
            above += offered;
        }
        let is_wanted = !self.demand.is_overloaded() && !self.settings.is_shadow;
        if !is_wanted {
            self.order_level = UNORDERED;
        }
        let load = self.load();
        self.limit.start(now_us, load);
        let offered = self.demand.offered_mean();
        let load = (self.in_flight, self.room.len());
        self.order_level = self.limit.order_level(is_wanted, offered, load);
        if self.limit.end_outage(now_us, self.load()) {
            // It closed for a limit that says nothing about the upstream.
            self.threshold.open();
        }
    }

    /// Requests that would wait for the limit if none waited for order.
    fn waiting(&self) -> usize {
        match self.is_ordering() {
            true => (self.in_flight as usize + self.room.len())
                .saturating_sub(self.limit.limit() as usize),
            false => self.room.len(),
        }
    }

    fn load(&self) -> LoadView {
        LoadView {
            is_overloaded: self.demand.is_heavy(),
            is_waiting: self.room.len() > 0 && !self.is_ordering(),
            in_flight: self.in_flight,
            gap_us: self.demand.gap_us(),
        }
    }

    /// Whether a threshold that is not open lets this request wait, and in which lane.
    #[inline(never)]
    fn standing(&mut self, class: u8, client: u64) -> FairStanding {
        match self.threshold.open_steps(class) {
            0 => FairStanding::Refused,
            _ if client != 0 => {
                let random = self.random();
                self.fair[usize::from(class)].admit(client, random)
            }
            STEPS => FairStanding::Beyond,
            open if self.random() >> 28 < open => FairStanding::Beyond,
            _ => FairStanding::Refused,
        }
    }

    #[inline]
    fn admit(&mut self, class: u8) {
        self.in_flight += 1;
        let counts = self.counts(class);
        counts.in_flight += 1;
        counts.admitted += 1;
    }

    fn shed(&mut self, class: u8, reason: ShedReason) -> LaterStep {
        self.demand.shed();
        let counts = self.counts(class);
        match reason {
            ShedReason::Adaptive => counts.shed_adaptive += 1,
            ShedReason::Queue => counts.shed_queue += 1,
            ShedReason::Fleet => {}
        }
        LaterStep::Shed(reason)
    }

    /// The oldest request of a lane that has waited too long.
    fn next_late(&self, now_us: u64) -> Option<(QueueEntryId, u8)> {
        self.room.oldest_by_lane().find_map(|(lane, slot, entered_us)| {
            let waited_us = self.waited_us(entered_us, now_us);
            (waited_us > self.wait_us(lane, now_us)).then_some((slot, lane.class))
        })
    }

    fn wait_us(&self, lane: Lane, now_us: u64) -> u64 {
        match self.demand.is_overloaded() {
            _ if self.limit.is_climbing() => CLIMB_WAIT_US,
            false => self.patience_us(WAIT_US),
            // They wait for all classes above, and for no other client of theirs.
            true if lane.is_inside && self.threshold.is_last(lane.class) => {
                self.patience_us(WAIT_US)
            }
            true if !self.is_late(lane) => match self.limit.is_new(now_us) {
                // The upstream still works off what it got while the limit was too high, and the
                // search tries levels that are too low.
                true => self.patience_us(WAIT_US),
                false => self.patience_us(OVERLOAD_WAIT_US),
            },
            true => {
                let call_us = self.load().gap_us * u64::from(self.limit.high());
                self.demand.per_excess(call_us * 2).clamp(LATE_WAIT_US.0, LATE_WAIT_US.1)
            }
        }
    }

    /// This wait, or longer if an upstream with few calls a second would free too few slots in it.
    fn patience_us(&self, wait_us: u64) -> u64 {
        match self.demand.drains_us(WAIT_CALLS) {
            // No call has ended.
            u64::MAX => wait_us,
            drains_us => drains_us.clamp(wait_us, SLOW_WAIT_US),
        }
    }

    /// Whether most requests of a lane are shed.
    fn is_late(&self, lane: Lane) -> bool {
        self.demand.is_overloaded() && self.threshold.is_last(lane.class) && !lane.is_inside
    }

    #[inline]
    fn class(&self, class: u8) -> u8 {
        class.min(self.settings.classes - 1)
    }

    #[inline]
    fn counts(&mut self, class: u8) -> &mut ClassCounts {
        &mut self.classes[usize::from(class % CLASSES_MAX)]
    }

    /// The next random number: xorshift64*.
    fn random(&mut self) -> u32 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}
