//! Charges of requests in flight, for callers that see the response.
//!
//! In-flight charges are reservations that never leave the process, so the store is called once, at
//! the end. If the process dies, charges stay, and slots are freed after their `ttl`.

use super::ReservationEnd;
use super::record::ReservedCharge;
use super::settleable::settleable_charges;
use super::shed_hold::{ShedHold, ShedPlace};
use super::slots::{HeldSlot, SlotGuard, SlotRegistry};
use crate::buffers::BufferPool;
use crate::engine::{Gate, GateBuffers, Rules, Verdict};
use crate::gate::{AdjustedCharge, DecisionRequest, RequestEnd};
use crate::rules::{ClassCounters, InFlightCount, ShedEntry, ShedRules, store_mode};
use crate::shed::{Entry, QueuedEntry, ShedRefusal, ShedTicket, UpstreamOutcome};
use smallvec::SmallVec;
use std::mem;
use std::sync::Arc;
use tollgate_core::{Intent, LimitParams};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{CostRule, Limit, Statuses};
use tollgate_store::{Answers, Change, Charge, ParamsId, Store, StoreReply};

/// Options of [`Gate::admit`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct AdmissionOptions<'a> {
    /// The request's cost.
    pub cost: u64,
    /// The limits to apply, by their index in the file; `None` for all.
    pub only: Option<&'a [usize]>,
    /// Whether every charge is held, because the caller may undo it.
    pub hold_all: bool,
    /// Whether the caller sees the end of the request. Otherwise its slots in the fleet are held
    /// for the time that the policy assumes.
    pub is_end_seen: bool,
    /// The clock for entering the adaptive shedder after the limits admitted the request; `None`
    /// skips that shedder.
    pub adaptive_clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
}

impl Default for AdmissionOptions<'_> {
    fn default() -> Self {
        let (hold_all, is_end_seen, adaptive_clock) = (false, true, None);
        Self { cost: 1, only: None, hold_all, is_end_seen, adaptive_clock }
    }
}

impl AdmissionOptions<'_> {
    pub(crate) fn end(&self) -> RequestEnd {
        if self.is_end_seen { RequestEnd::Seen } else { RequestEnd::Unseen }
    }
}

impl std::fmt::Debug for AdmissionOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmissionOptions")
            .field("cost", &self.cost)
            .field("only", &self.only)
            .field("hold_all", &self.hold_all)
            .field("is_end_seen", &self.is_end_seen)
            .finish_non_exhaustive()
    }
}

/// The charges that an admitted request holds until its response: slots, places in a queue,
/// estimates, and charges that the status may undo. [`Gate::finish`] ends them.
#[derive(Debug)]
#[must_use = "slots are held until `Gate::finish`"]
pub struct InFlightCharges {
    /// Boxed and reused by later requests: a shedder holds each request.
    pub(super) state: Box<InFlightState>,
}

#[derive(Debug, Default)]
pub(super) struct InFlightState {
    pub(super) charges: SmallVec<[InFlightCharge; 1]>,
    /// The request's place in the shedders, if one is on.
    pub(super) shed: Option<ShedHold>,
}

/// A request that enters the shedders, if its limits admit it.
#[derive(Clone, Copy)]
struct EnteringRequest<'a> {
    shed: &'a ShedRules,
    counters: &'a Arc<ClassCounters>,
    client: u64,
    /// `None` skips the adaptive shedder.
    clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
}

thread_local! {
    static STATES: BufferPool<InFlightState> = const { BufferPool::new() };
}

#[derive(Debug)]
pub(super) struct InFlightCharge {
    /// Shared with the renewal of the slot.
    pub(super) charge: Arc<KeyedCharge>,
    /// Whether the request has an unused place in a queue.
    is_queued: bool,
    end: Option<ReservationEnd>,
    pub(super) is_violation: bool,
    /// The slot of a concurrency limit.
    slot: Option<SlotGuard>,
}

/// A charge with its key, so that it can be adjusted later.
#[derive(Debug)]
pub(super) struct KeyedCharge {
    pub(super) reserved: ReservedCharge,
    pub(super) state_id: u64,
    /// The id of the state in the fallback store, if that store made the charge.
    pub(super) local_id: Option<u64>,
    pub(super) tier: Option<Arc<str>>,
    pub(super) key: SmallVec<[u8; 32]>,
}

impl KeyedCharge {
    pub(super) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge {
            limit: self.local_id.unwrap_or(self.state_id),
            key: &self.key,
            params: &self.reserved.params,
            params_id: ParamsId::default(),
            cost,
            mode: store_mode(&self.reserved.limit),
            penalty: self.reserved.limit.penalty.as_ref(),
        }
    }

    /// Whether the fallback store made the charge, and so must settle it.
    pub(super) fn is_local(&self) -> bool {
        self.local_id.is_some()
    }

    pub(super) fn adjusted(&self) -> AdjustedCharge<'_> {
        AdjustedCharge { state_id: self.state_id, tier: self.tier.as_deref() }
    }
}

impl InFlightCharges {
    /// The limits whose charges are held, each with its index here.
    #[inline]
    pub fn limits(&self) -> impl Iterator<Item = (usize, &Limit)> {
        self.state.charges.iter().map(|held| &*held.charge.reserved.limit).enumerate()
    }

    /// Whether the request holds slots, which [`Gate::renew_slots`] must renew.
    #[inline]
    pub fn has_slots(&self) -> bool {
        self.state.charges.iter().any(|held| held.slot.is_some())
    }

    /// Records the status of the response. Places in a queue are used, and `on_response` may refund
    /// the charge or count a violation. The start of a response frees the slot of the adaptive
    /// shedder: its duration depends on the client.
    #[inline]
    pub fn on_response(&mut self, status: u16, clock: impl FnOnce() -> u64) {
        self.state.charges.iter_mut().for_each(|held| held.on_response(status));
        if let Some(shed) = &mut self.state.shed {
            shed.record_status(status);
            shed.release(clock);
        }
    }

    /// Records the upstream's outcome, for the adaptive shedder. The first record counts, and the
    /// status of a response is one.
    pub fn record_upstream(&mut self, outcome: UpstreamOutcome) {
        if let Some(shed) = &mut self.state.shed {
            shed.record(outcome);
        }
    }

    /// Frees the slot of the adaptive shedder while the client sends the body, and takes it again
    /// afterwards.
    pub fn set_waits_for_client(&mut self, waits_for_client: bool, clock: impl FnOnce() -> u64) {
        if let Some(ShedHold { place: ShedPlace::Slot(ticket), .. }) = &mut self.state.shed {
            ticket.set_paused(clock(), waits_for_client);
        }
    }

    /// Whether the request waits for the adaptive shedder.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(&self.state.shed, Some(ShedHold { place: ShedPlace::Queue(_), .. }))
    }

    /// Takes the request's place in the queue. [`Gate::leave_queue`] ends the wait. Charges that
    /// end before are refunded.
    pub fn take_queued(&mut self) -> Option<QueuedEntry> {
        let place = &mut self.state.shed.as_mut()?.place;
        match mem::replace(place, ShedPlace::Outside) {
            ShedPlace::Queue(queued) => Some(queued),
            other => {
                *place = other;
                None
            }
        }
    }

    /// Records the actual cost, in units of the limit at this index. A refund stays a refund.
    pub fn settle(&mut self, index: usize, units: u64) {
        if let Some(held) = self.state.charges.get_mut(index)
            && held.end != Some(ReservationEnd::Cancel)
        {
            held.end = Some(ReservationEnd::Settle(units.min(u32::MAX.into())));
        }
    }

    /// Refunds every charge.
    pub fn refund(&mut self) {
        self.state.charges.iter_mut().for_each(|held| held.end = Some(ReservationEnd::Cancel));
    }

    /// Returns the charges, unless nothing is held.
    #[inline]
    fn or_recycle(self) -> Option<Self> {
        if self.state.shed.is_none() && self.state.charges.is_empty() {
            self.recycle();
            return None;
        }
        Some(self)
    }

    /// Keeps the memory of ended charges, if the request has no place in a shedder.
    #[inline(always)]
    pub(super) fn recycle(self) {
        let Self { mut state } = self;
        if !state.charges.is_empty() {
            state.charges.clear();
        }
        // A thread that is ending may have no pool.
        STATES.try_with(|pool| pool.put(state)).ok();
    }
}

impl InFlightCharges {
    /// Applies the answer of an adaptive shedder without a free slot.
    #[inline(never)]
    fn enter_later(&mut self, entry: ShedEntry, verdict: &mut Verdict<'_>) {
        let Some(shed) = &mut self.state.shed else { return };
        match entry {
            ShedEntry::Shadow(queued) => shed.place = ShedPlace::Shadow(queued),
            ShedEntry::Enforced(Entry::Admitted(ticket)) => shed.place = ShedPlace::Slot(ticket),
            ShedEntry::Enforced(Entry::Queued(queued)) => {
                shed.place = ShedPlace::Queue(queued);
                // A client that leaves while it waits gets everything back.
                self.refund();
            }
            ShedEntry::Enforced(Entry::Shed(refusal)) => {
                verdict.set_shed(refusal);
                self.refund();
            }
        }
    }
}

impl InFlightCharge {
    fn on_response(&mut self, status: u16) {
        let on_response = &self.charge.reserved.limit.on_response;
        let has = |list: &[Statuses]| list.iter().any(|statuses| statuses.contains(status));
        self.is_queued = false;
        self.is_violation = has(&on_response.penalty);
        if has(&on_response.refund) {
            self.end = Some(ReservationEnd::Cancel);
        }
    }

    /// Registers the slot, so that it is renewed while the request runs.
    fn track_slot(mut self, slots: &Arc<SlotRegistry>, now_us: u64) -> Self {
        let reserved = &self.charge.reserved;
        if let (LimitParams::Concurrency(limit), Some(receipt)) =
            (&reserved.params, reserved.receipt)
        {
            let slot = HeldSlot::new(self.charge.clone(), receipt, limit.ttl_us(), now_us);
            self.slot = Some(slots.register(slot));
        }
        self
    }

    /// The change at the end; most charges stay unchanged.
    pub(super) fn change(&self) -> Option<Change> {
        let end = match (self.end, self.charge.reserved.params) {
            (_, LimitParams::Concurrency(_)) => ReservationEnd::Cancel,
            (Some(end), _) => end,
            (None, _) if self.is_queued => ReservationEnd::Cancel,
            (None, _) => return None,
        };
        match self.charge.reserved.settlement(end).change {
            Change::GiveBack { units: 0, .. } => None,
            Change::GiveBack { units, receipt, charged_params } => {
                let receipt = self.slot.as_ref().and_then(SlotGuard::end).unwrap_or(receipt);
                Some(Change::GiveBack { units, receipt, charged_params })
            }
            change => Some(change),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Decides like [`check`](Self::check), for a request whose response the caller will see. Also
    /// returns the charges that depend on the response.
    ///
    /// With an [`adaptive_clock`](AdmissionOptions::adaptive_clock), an admitted request enters the
    /// adaptive shedder. If it is shed, the returned charges are refunds. If it
    /// [waits](InFlightCharges::is_waiting), [`leave_queue`](Self::leave_queue) must follow.
    pub fn admit<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        options: &AdmissionOptions<'a>,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, (Verdict<'r>, Option<InFlightCharges>), S::Undecided> {
        let GateBuffers { selection, answers, rows, decision_buffers: buffers, .. } = gate_buffers;
        let take = Intent::Take;
        let request =
            DecisionRequest::select(rules, now_us, facts, options, take, selection, buffers);
        let shed = request.class.zip(rules.shed());
        let entering = shed.and_then(|(class, shed)| {
            let (client, counters) = (shed.client(rules.policy(), facts), shed.counters(class)?);
            let clock = options.adaptive_clock.filter(|_| options.is_end_seen);
            Some(EnteringRequest { shed, counters, client, clock })
        });
        let (buffers, hold) = ((answers, buffers), (options.hold_all, options.end()));
        self.decide(request, buffers, mem::take(rows), move |request, decided, answers| {
            let mut verdict = decided.into_verdict(request);
            let held = match entering {
                Some(entering) => self.enter(request, &mut verdict, answers, hold, entering),
                None => self.hold(request, &verdict, answers, hold),
            };
            (verdict, held)
        })
    }

    /// Enters the shedders with a request that may be admitted, holds its charges, and counts it.
    #[inline]
    fn enter(
        &self,
        request: &DecisionRequest<'_, '_>,
        verdict: &mut Verdict<'_>,
        answers: &Answers,
        (mut hold_all, end): (bool, RequestEnd),
        EnteringRequest { shed, counters, client, clock }: EnteringRequest<'_>,
    ) -> Option<InFlightCharges> {
        if !verdict.allowed {
            Self::count_class(request.rules, verdict);
            return None;
        }
        let mut held = InFlightCharges { state: STATES.with(|pool| pool.take()) };
        let entry = match end {
            RequestEnd::Unseen => None,
            RequestEnd::Seen => {
                let hold = ShedHold::new(InFlightCount::new(counters));
                let place = &mut held.state.shed.insert(hold).place;
                clock.and_then(|clock| {
                    // No time has passed if the store is in this process.
                    let is_now = self.store.answers_at_once();
                    let now_us = if is_now { request.now_us } else { clock() };
                    let admit = |ticket| *place = ShedPlace::Slot(ticket);
                    shed.enter(verdict, client, now_us, admit)
                })
            }
        };
        hold_all |= matches!(entry, Some(ShedEntry::Enforced(_)));
        if hold_all || verdict.delay_us > 0 || request.rules.depends_on_answers() {
            let charges = &mut held.state.charges;
            self.hold_charges(request, verdict, answers, (hold_all, end), charges);
        }
        if let Some(entry) = entry {
            held.enter_later(entry, verdict);
        }
        if let Some(shed) = verdict.shed.as_ref().filter(|_| !held.is_waiting()) {
            counters.count(shed, verdict.allowed);
        }
        held.or_recycle()
    }

    /// Ends the wait of a request: it continues with its ticket, or the verdict becomes shed.
    pub fn leave_queue(
        &self,
        rules: &Rules,
        verdict: &mut Verdict<'_>,
        held: &mut InFlightCharges,
        waited: Result<ShedTicket, ShedRefusal>,
    ) {
        match waited {
            Ok(ticket) => {
                held.state.charges.iter_mut().for_each(|held| held.end = None);
                if let Some(shed) = &mut held.state.shed {
                    shed.place = ShedPlace::Slot(ticket);
                }
            }
            Err(refusal) => verdict.set_shed(refusal),
        }
        Self::count_class(rules, verdict);
    }

    /// The charges that an admitted request holds until its response, if no shedder is on.
    #[inline]
    fn hold(
        &self,
        request: &DecisionRequest<'_, '_>,
        verdict: &Verdict<'_>,
        answers: &Answers,
        hold: (bool, RequestEnd),
    ) -> Option<InFlightCharges> {
        let may_hold = hold.0 || verdict.delay_us > 0 || request.rules.depends_on_answers();
        if !verdict.allowed || !may_hold {
            return None;
        }
        let mut held = InFlightCharges { state: STATES.with(|pool| pool.take()) };
        self.hold_charges(request, verdict, answers, hold, &mut held.state.charges);
        held.or_recycle()
    }

    #[inline(never)]
    fn hold_charges(
        &self,
        request: &DecisionRequest<'_, '_>,
        verdict: &Verdict<'_>,
        answers: &Answers,
        (hold_all, end): (bool, RequestEnd),
        charges: &mut SmallVec<[InFlightCharge; 1]>,
    ) {
        let DecisionRequest { rules, now_us, .. } = *request;
        for settleable in settleable_charges(request, answers) {
            let selected = settleable.selected;
            let is_queued = verdict.delay_us > 0 && settleable.answer.outcome.delay_us > 0;
            if end == RequestEnd::Unseen && selected.limit.selector.is_shed() {
                continue;
            }
            if hold_all || is_queued || depends_on_answer(selected.limit, selected.params) {
                let charge = Arc::new(settleable.keyed(rules, settleable.reserved(rules)));
                let (end, is_violation, slot) = (None, false, None);
                let charge = InFlightCharge { charge, is_queued, end, is_violation, slot };
                charges.push(charge.track_slot(&self.slots, now_us));
            }
        }
    }
}

/// Whether the charge of this limit depends on the response.
pub(crate) fn depends_on_answer(limit: &Limit, params: &LimitParams) -> bool {
    matches!(params, LimitParams::Concurrency(_))
        || matches!(limit.cost, CostRule::Estimate { .. })
        || !limit.on_response.is_empty()
}
