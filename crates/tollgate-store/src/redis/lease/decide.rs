//! Decides requests of leased limits: from leases on the calling thread, or with Redis.

use super::{Fence, LeaseAddress, LeaseDecision, LeasedLimit, Leases};
use crate::lease::SpentUnits;
use crate::raw::clock::instant_after;
use crate::redis::batch::queue::{RequestRows, failed_rows};
use crate::redis::batch::rows::invalid_reply;
use crate::redis::batch::slot_returns::{UnreadReply, UnreadSlots};
use crate::redis::batch::{DecideRequest, NamedCharge, REFUSE_ALL};
use crate::redis::client::failure::Failure;
use crate::redis::{RedisStore, UndecidedRequests};
use crate::{Answer, Answers, Charge, ChargeMode, Origin, Request, StoreError};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tollgate_core::Intent;

/// Limit of charges per request that leases decide. The store decides larger requests.
const LOCAL_CHARGES_MAX: usize = 8;

/// Spent units, put back on drop unless the request is admitted. The caller may be cancelled.
struct SpentGuard<'a> {
    leases: &'a Leases,
    spent: Vec<(LeaseAddress, SpentUnits)>,
}

impl Drop for SpentGuard<'_> {
    fn drop(&mut self) {
        self.spent.iter().for_each(|(address, spent)| self.leases.refund(*address, spent));
    }
}

/// One request, with the answers from leases.
struct PlannedRequest<'a> {
    request: &'a Request<'a>,
    /// For each charge, the answer that needs no call to the store.
    lease_answers: Vec<Option<Answer>>,
    taken: SpentGuard<'a>,
    for_store: Option<DecideRequest>,
    fence: Option<PlannedFence>,
}

/// The times of a call.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct DecisionTimes {
    /// The instant of the decisions, by the caller's clock; `None` uses the clock of Redis.
    pub(in crate::redis) now_us: Option<u64>,
    /// The instant of the call, by the caller's clock.
    pub(in crate::redis) called_us: u64,
    pub(in crate::redis) deadline: Instant,
}

impl DecisionTimes {
    /// The deadline of leases. A lease that waits for a failing server leaves half of the time to
    /// the other charges of the request.
    fn lease_deadline(&self, charges: usize) -> Instant {
        if charges == 1 {
            return self.deadline;
        }
        let now = instant_after(Duration::ZERO);
        now + self.deadline.saturating_duration_since(now) / 2
    }
}

/// The fence of a request whose leased limit fails closed and is decided by the store.
struct PlannedFence {
    fence: Arc<Fence>,
    sent_us: u64,
    /// The longest grace period of the request's limits.
    grace_us: u64,
}

impl RedisStore {
    /// Answers the first requests, as far as leases suffice. Allocates nothing.
    #[inline]
    pub(in crate::redis) fn decide_locally(
        &self,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) -> Option<UndecidedRequests> {
        let undecided = |(first, request): (usize, &Request<'_>)| {
            let rest = self.decide_request_locally(request, answers).err()?;
            Some(UndecidedRequests { first, ..rest })
        };
        requests.iter().enumerate().find_map(undecided)
    }

    /// Decides a request, if leases decide all its charges.
    #[inline]
    fn decide_request_locally(
        &self,
        request: &Request<'_>,
        answers: &mut Answers,
    ) -> Result<(), UndecidedRequests> {
        let Request { charges, intent } = *request;
        let rest = UndecidedRequests::default();
        let is_leased = |charge| self.leased_limit(charge, intent).is_some();
        if charges.is_empty() || charges.len() > LOCAL_CHARGES_MAX || !charges.iter().all(is_leased)
        {
            return Err(rest);
        }
        let mut taken = SmallVec::<[(LeaseAddress, Option<SpentUnits>); LOCAL_CHARGES_MAX]>::new();
        let (mut admitted, mut decided) = (true, true);
        for charge in charges {
            // Always `Some`: every charge is leased, as checked above.
            let Some(leased) = self.leased_limit(charge, intent) else { continue };
            let (decision, address) = self.leases.take(charge, leased);
            let Some((answer, spent)) = lease_answer(decision) else {
                decided = false;
                continue;
            };
            admitted &= spent.is_some();
            taken.push((address, spent));
            answers.push(answer);
        }
        if !(decided && admitted) {
            self.undo(&taken, decided);
        }
        if !decided {
            answers.discard_current_rows();
            return Err(UndecidedRequests { leases_tried: true, ..rest });
        }
        if !admitted {
            answers.current_rows().iter_mut().for_each(show_refunded);
        }
        answers.finish(admitted);
        Ok(())
    }

    /// Puts spent units back. Refusals stay counted only if the request is `decided`.
    #[cold]
    fn undo(&self, taken: &[(LeaseAddress, Option<SpentUnits>)], decided: bool) {
        for (address, spent) in taken {
            match spent {
                Some(spent) => self.leases.refund(*address, spent),
                None if !decided => self.leases.uncount_refusal(*address),
                None => {}
            }
        }
    }

    /// The leased limit of a charge, if a lease can decide the charge.
    #[inline]
    fn leased_limit(&self, charge: &Charge<'_>, intent: Intent) -> Option<&LeasedLimit> {
        let plain = charge.mode == ChargeMode::Enforce && charge.penalty.is_none();
        // A peek or a cost of zero charges nothing.
        let takes = charge.cost > 0 && intent == Intent::Take;
        if plain && takes { self.leases.leased_limit(charge.params_id) } else { None }
    }

    pub(in crate::redis) fn has_leased_limit(&self, requests: &[Request<'_>]) -> bool {
        let mut charges = requests.iter().flat_map(|request| request.charges);
        charges.any(|charge| self.leases.leased_limit(charge.params_id).is_some())
    }

    /// Decides requests, from leases as far as they suffice. Charges whose servers fail have failed
    /// rows; if all do, returns the error. Returns the slots that the store charged.
    pub(in crate::redis) async fn decide_mixed(
        &self,
        times: DecisionTimes,
        requests: &[Request<'_>],
        tried: &mut bool,
        answers: &mut Answers,
    ) -> Result<UnreadSlots, StoreError> {
        let (mut planned, mut error) = (Vec::with_capacity(requests.len()), None);
        for request in requests {
            planned.push(self.plan(request, std::mem::take(tried), times, &mut error).await);
        }
        let for_store: SmallVec<_> =
            planned.iter_mut().filter_map(|one| one.for_store.take()).collect();
        let mut reply = UnreadReply::default();
        if !for_store.is_empty() {
            let charges: SmallVec<[usize; 1]> =
                for_store.iter().map(|request: &DecideRequest| request.charges.len()).collect();
            let called = self.servers.decide(times.now_us, times.deadline, for_store).await;
            reply = called.unwrap_or_else(|why| {
                let failed = charges.iter().map(|charges| failed_rows(why.kind, *charges));
                let rows = failed.collect();
                error.get_or_insert(why);
                UnreadReply { rows, ..UnreadReply::default() }
            });
        }
        let UnreadReply { rows, slots } = reply;
        let (mut decided, mut is_decided) = (rows.into_iter(), false);
        for one in planned {
            let rows = if one.needs_store() {
                Some(decided.next().ok_or_else(invalid_reply)?)
            } else {
                None
            };
            let mut all = rows.iter().flat_map(|(_, rows)| rows);
            let is_valid = match &one.fence {
                // Without a decision there is nothing to prove.
                Some(_) if all.all(|row| row.failure().is_some()) => true,
                Some(PlannedFence { fence, sent_us, grace_us }) => {
                    let (leases, servers) = (&self.leases, &self.servers);
                    let check = leases.is_decision_valid(servers, fence, *sent_us, *grace_us);
                    let checked = timeout_at(times.deadline, check).await;
                    checked.map_err(|_| Failure::timeout().error)?
                }
                None => true,
            };
            is_decided |= self.finish(one, rows, is_valid, answers)?;
        }
        match error.filter(|_| !is_decided) {
            Some(error) => Err(error),
            None => Ok(slots),
        }
    }

    /// Takes units from leases, and prepares the other charges for the store. Keeps the first
    /// error.
    async fn plan<'a>(
        &'a self,
        request: &'a Request<'a>,
        tried: bool,
        times: DecisionTimes,
        error: &mut Option<StoreError>,
    ) -> PlannedRequest<'a> {
        let Request { charges, intent } = *request;
        let taken = SpentGuard { leases: &self.leases, spent: Vec::new() };
        let mut planned = PlannedRequest {
            request,
            lease_answers: Vec::new(),
            taken,
            for_store: None,
            fence: None,
        };
        let deadline = times.lease_deadline(charges.len());
        for charge in charges {
            let mut answer = None;
            if intent == Intent::Take && self.leases.leased_limit(charge.params_id).is_some() {
                let taking = self.take_from_lease(charge, tried, &mut planned.taken.spent);
                let taken = timeout_at(deadline, taking).await;
                let taken = taken.unwrap_or_else(|_| Err(Failure::timeout().error));
                answer = taken.unwrap_or_else(|why| {
                    let failed = Answer::failed(why.kind);
                    error.get_or_insert(why);
                    Some(failed)
                });
            }
            planned.lease_answers.push(answer);
        }
        if planned.needs_store() {
            let pairs = charges.iter().zip(&planned.lease_answers);
            let charges = pairs.filter_map(|(charge, answer)| match answer {
                None => Some(self.named_charge(charge, times.called_us)),
                // A charge that always refuses is sent instead, so that the other charges show and
                // count a refusal.
                Some(answer) if !answer.outcome.admitted => Some(self.always_refusing(charge)),
                Some(_) => None,
            });
            let charges = charges.collect();
            planned.fence = self.fence(request, &planned.lease_answers);
            let fence = planned.fence.as_ref().map(|fenced| Arc::clone(&fenced.fence));
            planned.for_store = Some(DecideRequest { intent, charges, fence });
        }
        planned
    }

    /// The answer of a leased limit that needs no call to the store; `None` if the store decides.
    async fn take_from_lease(
        &self,
        charge: &Charge<'_>,
        tried: bool,
        spent: &mut Vec<(LeaseAddress, SpentUnits)>,
    ) -> Result<Option<Answer>, StoreError> {
        if let Some(leased) = self.leased_limit(charge, Intent::Take) {
            let taken = self.leases.take_or_wait(&self.servers, charge, leased, tried).await?;
            let (decision, address) = taken;
            if matches!(decision, LeaseDecision::GracePeriod) {
                return Ok(self.grace_answer(charge));
            }
            if let Some((answer, units)) = lease_answer(decision) {
                spent.extend(units.map(|units| (address, units)));
                return Ok(Some(answer));
            }
        }
        let is_trusted = self.is_store_trusted(charge).await?;
        Ok(if is_trusted { None } else { self.grace_answer(charge) })
    }

    /// The fence of a request, if the store decides a leased limit that fails closed.
    fn fence(
        &self,
        request: &Request<'_>,
        lease_answers: &[Option<Answer>],
    ) -> Option<PlannedFence> {
        let for_store = request.charges.iter().zip(lease_answers).filter(|(_, own)| own.is_none());
        let fails_closed = |charge| self.grace_answer(charge).is_some();
        let fenced = for_store.map(|(charge, _)| charge).filter(|charge| fails_closed(charge));
        let leased = fenced.filter_map(|charge| self.leases.leased_limit(charge.params_id));
        let grace_us = leased.map(|leased| leased.terms.grace_us).max()?;
        let takes = request.intent == Intent::Take;
        let fence = Arc::new(Fence::new());
        takes.then(|| PlannedFence { fence, sent_us: self.leases.now_us(), grace_us })
    }

    /// Whether the store may decide a charge. Its state includes the leases of other nodes only
    /// while the primary keeps acknowledged writes.
    async fn is_store_trusted(&self, charge: &Charge<'_>) -> Result<bool, StoreError> {
        let Some(leased) = self.leases.leased_limit(charge.params_id) else { return Ok(true) };
        let slot =
            self.servers.slot(|| self.namer.state_key(charge.limit, charge.key, charge.params));
        self.leases.confirm_primary(&self.servers, slot, leased).await
    }

    /// The answer of a leased limit in a grace period; `None` if the store decides.
    fn grace_answer(&self, charge: &Charge<'_>) -> Option<Answer> {
        self.leases.leased_limit(charge.params_id).and_then(LeasedLimit::grace_answer)
    }

    /// Merges the rows of leases and store, in the order of the charges. A leased limit that fails
    /// closed refuses an invalid decision. Returns whether any charge was decided.
    fn finish(
        &self,
        planned: PlannedRequest<'_>,
        rows: Option<RequestRows>,
        is_valid: bool,
        answers: &mut Answers,
    ) -> Result<bool, StoreError> {
        let PlannedRequest { request, lease_answers, mut taken, .. } = planned;
        let refuses = |answer: &Answer| !answer.outcome.admitted;
        let (admitted, rows) = rows.unwrap_or((true, SmallVec::new()));
        let admitted = admitted && is_valid && !lease_answers.iter().flatten().any(refuses);
        if admitted {
            taken.spent.clear();
        }
        drop(taken);
        let (mut rows, mut peek_admitted, mut is_decided) = (rows.into_iter(), true, false);
        for (charge, answer) in request.charges.iter().zip(lease_answers) {
            let mut answer = match answer {
                Some(answer) => {
                    if refuses(&answer) {
                        rows.next();
                    }
                    answer
                }
                None => {
                    let row = rows.next().ok_or_else(invalid_reply)?;
                    // The store has already charged its decision, and charges of other limits stay
                    // too. This affects only requests in flight when a store loses writes.
                    let is_refused = !is_valid && row.failure().is_none();
                    let refusal = self.grace_answer(charge).filter(|_| is_refused);
                    refusal.unwrap_or_else(|| self.show_leased(charge, request.intent, row))
                }
            };
            if !admitted {
                show_refunded(&mut answer);
            }
            peek_admitted &= answer.outcome.admitted || !charge.mode.is_enforced();
            is_decided |= answer.failure().is_none();
            answers.push(answer);
        }
        // A peek counts the units of this process's lease, which the store does not know.
        answers.finish(if request.intent == Intent::Peek { peek_admitted } else { admitted });
        Ok(is_decided)
    }

    /// Converts a row of the store to the limit's own view: its capacity, and the units of this
    /// process's lease.
    fn show_leased(&self, charge: &Charge<'_>, intent: Intent, mut answer: Answer) -> Answer {
        let leased = self.leases.leased_limit(charge.params_id);
        let Some(leased) = leased.filter(|_| answer.failure().is_none()) else { return answer };
        answer.outcome.limit = leased.capacity;
        match intent {
            Intent::Take => {
                self.leases.record_direct_decision(charge, leased, &answer);
                if !answer.outcome.admitted && !answer.blocked {
                    let all =
                        answer.outcome.remaining.saturating_add(self.leases.spendable(charge));
                    answer.outcome.remaining =
                        all.min(leased.capacity).min(charge.cost.saturating_sub(1));
                }
            }
            Intent::Peek if !answer.blocked => {
                let leased_units = self.leases.spendable(charge);
                if charge.cost <= leased_units {
                    answer.outcome.admitted = true;
                    answer.outcome.retry_after_us = Some(0);
                }
                let remaining = answer.outcome.remaining.saturating_add(leased_units);
                answer.outcome.remaining = remaining.min(leased.capacity);
            }
            Intent::Peek => {}
        }
        answer
    }

    /// A charge with its Redis key. A leased limit gets the params that leases leave in the store.
    pub(in crate::redis) fn named_charge(
        &self,
        charge: &Charge<'_>,
        called_us: u64,
    ) -> NamedCharge {
        match self.leases.leased_limit(charge.params_id) {
            Some(leased) => {
                let charge = Charge { params: &leased.terms.store_params, ..*charge };
                NamedCharge::new(&self.namer, &charge, called_us)
            }
            None => NamedCharge::new(&self.namer, charge, called_us),
        }
    }

    /// A charge that always refuses, and whose state is never kept.
    fn always_refusing(&self, charge: &Charge<'_>) -> NamedCharge {
        NamedCharge::new(&self.namer, &Charge { params: &REFUSE_ALL, ..*charge }, 0)
    }
}

impl PlannedRequest<'_> {
    fn needs_store(&self) -> bool {
        self.request.charges.is_empty() || self.lease_answers.iter().any(Option::is_none)
    }
}

/// The answer of a lease, and the units that it spent; `None` if the lease did not decide.
#[inline]
fn lease_answer(decision: LeaseDecision) -> Option<(Answer, Option<SpentUnits>)> {
    match decision {
        LeaseDecision::Spent(answer, spent) => Some((answer, Some(spent))),
        LeaseDecision::Refused(answer) => Some((answer, None)),
        LeaseDecision::Direct
        | LeaseDecision::Wait
        | LeaseDecision::Failed
        | LeaseDecision::GracePeriod => None,
    }
}

/// Marks a charge as put back, because another limit refused.
fn show_refunded(answer: &mut Answer) {
    if let Some(receipt) = answer.receipt.take_if(|_| answer.origin == Origin::Lease) {
        let remaining = answer.outcome.remaining.saturating_add(receipt.cost);
        answer.outcome.remaining = remaining.min(answer.outcome.limit);
    }
}
