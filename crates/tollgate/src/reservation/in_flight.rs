//! What a request in flight still holds of its limits, for whoever sees its answer.
//!
//! A reservation that never leaves the process: the record is the value itself, so the store is
//! told once, at the end. A process that dies with it leaves what expiry leaves: charges count, and
//! slots are freed when their time has passed.

use super::ReservationEnd;
use super::record::ReservedCharge;
use super::reserve::{reserved_charge, settleable_charges};
use super::slots::{HeldSlot, SlotGuard, SlotRegistry};
use crate::gate::DecisionRequest;
use crate::{Gate, Rules, Verdict, Work};
use std::sync::Arc;
use tollgate_core::{Intent, LimitParams};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{CostRule, Limit, Mode};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ParamsId, Request, Store, StoreCall, StoreReply,
};

/// How a request that passes through is decided.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AdmissionOptions<'a> {
    /// The request's cost.
    pub cost: u64,
    /// Places in the file of the only limits to apply; all of them without it.
    pub only: Option<&'a [usize]>,
    /// Whether everything is held, since the answer may undo it.
    pub hold_all: bool,
}

impl Default for AdmissionOptions<'_> {
    fn default() -> Self {
        Self { cost: 1, only: None, hold_all: false }
    }
}

/// What an admitted request holds until it has been answered: slots, a place in a queue, an
/// estimate, and what its answer's status may undo. [`Gate::finish`] ends it.
#[derive(Debug)]
#[must_use = "slots are held until `Gate::finish`"]
pub struct InFlightCharges {
    charges: Vec<InFlightCharge>,
}

#[derive(Debug)]
struct InFlightCharge {
    reserved: ReservedCharge,
    state_id: u64,
    key: Box<[u8]>,
    /// Whether the request has a place in a queue that it has not used yet.
    is_queued: bool,
    end: Option<ReservationEnd>,
    is_violation: bool,
    /// Of a limit on concurrency.
    slot: Option<SlotGuard>,
}

impl InFlightCharges {
    /// The limits of which something is held, each with its place here.
    pub fn limits(&self) -> impl Iterator<Item = (usize, &Limit)> {
        self.charges.iter().map(|part| &*part.reserved.limit).enumerate()
    }

    /// Whether it holds slots, which [`Gate::renew_slots`] has to keep.
    pub fn has_slots(&self) -> bool {
        self.charges.iter().any(|part| part.slot.is_some())
    }

    /// The request was answered with this status, so its place in a queue is used, and
    /// `on_response` says what it counts for.
    pub fn on_response(&mut self, status: u16) {
        for part in &mut self.charges {
            let on_response = &part.reserved.limit.on_response;
            let among = |list: &[tollgate_policy::limit::Statuses]| {
                list.iter().any(|statuses| statuses.contains(status))
            };
            part.is_queued = false;
            part.is_violation = among(&on_response.penalty);
            if among(&on_response.refund) {
                part.end = Some(ReservationEnd::Cancel);
            }
        }
    }

    /// The answer said what the request cost, in units of the limit at this place. What counts for
    /// nothing still does.
    pub fn settle(&mut self, place: usize, units: u64) {
        if let Some(part) = self.charges.get_mut(place)
            && part.end != Some(ReservationEnd::Cancel)
        {
            part.end = Some(ReservationEnd::Settle(units.min(u32::MAX.into())));
        }
    }

    /// The request counts for nothing.
    pub fn refund(&mut self) {
        self.charges.iter_mut().for_each(|part| part.end = Some(ReservationEnd::Cancel));
    }
}

impl InFlightCharge {
    /// Has its slot renewed for as long as it is held.
    fn track_slot(mut self, slots: &Arc<SlotRegistry>, now_us: u64) -> Self {
        if let (LimitParams::Concurrency(one), Some(receipt)) =
            (&self.reserved.params, self.reserved.receipt)
        {
            let (ttl_us, charge) = (one.ttl_us(), self.charge(self.reserved.units_per_cost));
            self.slot = Some(slots.register(HeldSlot {
                state_id: charge.limit,
                params: *charge.params,
                mode: charge.mode,
                penalty: charge.penalty.copied(),
                key: self.key.clone(),
                receipt,
                ttl_us,
                due_us: HeldSlot::due_us(now_us, ttl_us),
                is_renewing: false,
                is_ended: false,
            }));
        }
        self
    }

    /// What the end changes; most of what is held is simply kept.
    fn change(&self) -> Option<Change> {
        let end = match (self.end, self.reserved.params) {
            (_, LimitParams::Concurrency(_)) => ReservationEnd::Cancel,
            (Some(end), _) => end,
            (None, _) if self.is_queued => ReservationEnd::Cancel,
            (None, _) => return None,
        };
        match self.reserved.settlement(end).change {
            Change::GiveBack { units: 0, .. } => None,
            Change::GiveBack { units, receipt, charged_params: under } => {
                let receipt = self.slot.as_ref().and_then(SlotGuard::end).unwrap_or(receipt);
                Some(Change::GiveBack { units, receipt, charged_params: under })
            }
            change => Some(change),
        }
    }

    fn charge(&self, cost: u64) -> Charge<'_> {
        Charge {
            limit: self.state_id,
            key: &self.key,
            params: &self.reserved.params,
            params_id: ParamsId::default(),
            cost,
            mode: match self.reserved.limit.mode {
                Mode::Shadow => tollgate_store::Mode::Shadow,
                Mode::Enforce | Mode::Off => tollgate_store::Mode::Enforce,
            },
            penalty: self.reserved.limit.penalty.as_ref(),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Decides as [`check`](Self::check) does, for a request whose answer the caller will see, and
    /// hands over what depends on it.
    pub fn admit<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        passage: &AdmissionOptions<'_>,
        work: &'a mut Work,
    ) -> StoreReply<'a, (Verdict<'r>, Option<InFlightCharges>), S::Undecided> {
        let Work { selection, answers, rows, decision_buffers: memory, .. } = work;
        rules.policy().select(facts, passage.cost, selection);
        if let Some(only) = passage.only {
            selection.retain(|limit| only.contains(&limit));
        }
        let mut question = DecisionRequest::new(rules, now_us, memory);
        question.push_selected(rules.policy().selected(selection), Intent::Take);
        let (buffers, hold_all) = ((answers, memory), passage.hold_all);
        self.decide(question, buffers, std::mem::take(rows), move |question, told, answers| {
            let verdict = Verdict::from(told);
            let held = self.hold(question, &verdict, answers, hold_all);
            (verdict, held)
        })
    }

    /// What an admitted request holds until it has been answered.
    fn hold(
        &self,
        question: &DecisionRequest<'_, '_>,
        verdict: &Verdict<'_>,
        answers: &Answers,
        hold_all: bool,
    ) -> Option<InFlightCharges> {
        let DecisionRequest { rules, now_us, .. } = *question;
        let may_hold = hold_all || verdict.delay_us > 0 || rules.depends_on_answers();
        if !verdict.allowed || !may_hold {
            return None;
        }
        let waits = |delay_us: u64| verdict.delay_us > 0 && delay_us > 0;
        let parts: Vec<InFlightCharge> = settleable_charges(question, verdict, answers)
            .filter(|(selected, _, answer)| {
                hold_all
                    || waits(answer.outcome.delay_us)
                    || depends_on_answer(selected.limit, selected.params)
            })
            .map(|(selected, charge, answer)| InFlightCharge {
                reserved: reserved_charge(rules, selected, charge, answer),
                state_id: charge.limit,
                key: charge.key.into(),
                is_queued: waits(answer.outcome.delay_us),
                end: None,
                is_violation: false,
                slot: None,
            })
            .map(|part| part.track_slot(&self.slots, now_us))
            .collect();
        (!parts.is_empty()).then_some(InFlightCharges { charges: parts })
    }

    /// Ends what a request held: slots are free, a place in a queue that was not used is given
    /// back, costs are settled, and what its answer's status says is counted.
    ///
    /// A store that cannot be told keeps what it has: estimates count, and slots are free when
    /// their time has passed.
    pub async fn finish(&self, now_us: u64, held: InFlightCharges) {
        let changes = held.charges.iter().filter_map(|part| {
            Some(Adjustment {
                charge: part.charge(part.reserved.units_per_cost),
                change: part.change()?,
            })
        });
        // The errors are counted, and nobody waits for the answers.
        let _ = self.adjust(now_us, changes.collect()).await;
        let mut answers = Answers::default();
        for part in held.charges.iter().filter(|part| part.is_violation) {
            // No limit admits so much, and a refusal counts as a violation and takes nothing.
            let charges = [part.charge(u64::MAX)];
            if charges[0].penalty.is_some() {
                let request = [Request { charges: &charges, intent: Intent::Take }];
                if let Err(error) =
                    self.store.call(now_us, StoreCall::Decide(&request), &mut answers).await
                {
                    self.errors.count(&error);
                }
            }
        }
    }
}

/// Whether anything about a charge of this limit is known only when the request has been answered.
pub(crate) fn depends_on_answer(limit: &Limit, params: &LimitParams) -> bool {
    matches!(params, LimitParams::Concurrency(_))
        || matches!(limit.cost, CostRule::Estimate { .. })
        || !limit.on_response.is_empty()
}
