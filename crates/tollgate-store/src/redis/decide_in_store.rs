//! Decides requests in the store: leases provide their units, Redis decides the rest.

use super::RedisStore;
use super::batch::queue::{BATCH_REQUESTS_MAX, RequestRows};
use super::batch::rows::{invalid_reply, push_rows};
use super::batch::{DecideRequest, NamedCharge};
use super::decide::{UndecidedRequests, show_refunded};
use super::lease::{Fence, LeaseAddress, LeaseDecision, LeasedLimit, Leases};
use crate::lease::SpentUnits;
use crate::{Answer, Answers, Charge, Request, StoreError};
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};

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

/// The fence of a request whose leased limit fails closed and is decided by the store.
struct PlannedFence {
    fence: Arc<Fence>,
    sent_us: u64,
    /// The longest grace period of the request's limits.
    grace_us: u64,
}

impl RedisStore {
    /// Decides the requests that [`decide_locally`](Self::decide_locally) left undecided.
    pub(super) async fn decide_in_store(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        rest: UndecidedRequests,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let called_us = now_us;
        let now_us = self.options.script_time(now_us);
        let requests = requests.get(rest.first..).unwrap_or_default();
        if requests.iter().all(|request| request.charges.is_empty()) {
            requests.iter().for_each(|_| answers.finish(true));
            return Ok(());
        }
        self.with_deadline_after(rest.spent, async {
            let mut tried = rest.leases_tried;
            // Chunks are sent one after the other, so that the requests of a key are decided in
            // order.
            for requests in requests.chunks(BATCH_REQUESTS_MAX) {
                if !self.has_leased_limit(requests) {
                    let named = |request| DecideRequest::new(&self.namer, request, called_us);
                    let requests = requests.iter().map(named).collect();
                    for (admitted, rows) in self.servers.decide(now_us, requests).await? {
                        push_rows(answers, admitted, &rows);
                    }
                    continue;
                }
                self.decide_mixed(now_us, called_us, requests, &mut tried, answers).await?;
            }
            Ok(())
        })
        .await
    }

    fn has_leased_limit(&self, requests: &[Request<'_>]) -> bool {
        let mut charges = requests.iter().flat_map(|request| request.charges);
        charges.any(|charge| self.leases.leased_limit(charge.params_id).is_some())
    }

    async fn decide_mixed(
        &self,
        now_us: Option<u64>,
        called_us: u64,
        requests: &[Request<'_>],
        tried: &mut bool,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let mut planned = Vec::with_capacity(requests.len());
        for request in requests {
            planned.push(self.plan(request, std::mem::take(tried), called_us).await?);
        }
        let for_store: SmallVec<_> =
            planned.iter_mut().filter_map(|one| one.for_store.take()).collect();
        let mut decided = SmallVec::new();
        if !for_store.is_empty() {
            decided = self.servers.decide(now_us, for_store).await?;
        }
        let mut decided = decided.into_iter();
        for one in planned {
            let rows = if one.needs_store() {
                Some(decided.next().ok_or_else(invalid_reply)?)
            } else {
                None
            };
            let is_valid = match &one.fence {
                Some(PlannedFence { fence, sent_us, grace_us }) => {
                    let leases = &self.leases;
                    leases.is_decision_valid(&self.servers, fence, *sent_us, *grace_us).await
                }
                None => true,
            };
            self.finish(one, rows, is_valid, answers)?;
        }
        Ok(())
    }

    /// Takes units from leases, and prepares the other charges for the store.
    async fn plan<'a>(
        &'a self,
        request: &'a Request<'a>,
        tried: bool,
        called_us: u64,
    ) -> Result<PlannedRequest<'a>, StoreError> {
        let Request { charges, intent } = *request;
        let taken = SpentGuard { leases: &self.leases, spent: Vec::new() };
        let mut planned = PlannedRequest {
            request,
            lease_answers: Vec::new(),
            taken,
            for_store: None,
            fence: None,
        };
        for charge in charges {
            let decision = match self.leased_limit(charge, intent) {
                None => None,
                Some(leased) => {
                    let leases = &self.leases;
                    Some(leases.take_or_wait(&self.servers, charge, leased, tried).await?)
                }
            };
            let answer = match decision {
                Some((LeaseDecision::Spent(answer, spent), address)) => {
                    planned.taken.spent.push((address, spent));
                    Some(answer)
                }
                Some((LeaseDecision::Refused(answer), _)) => Some(answer),
                Some((LeaseDecision::GracePeriod, _)) => self.grace_answer(charge),
                _ if intent == Intent::Peek || self.is_store_trusted(charge).await? => None,
                _ => self.grace_answer(charge),
            };
            planned.lease_answers.push(answer);
        }
        if planned.needs_store() {
            let pairs = charges.iter().zip(&planned.lease_answers);
            let charges = pairs.filter_map(|(charge, answer)| match answer {
                None => Some(self.named_charge(charge, called_us)),
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
        Ok(planned)
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
    /// closed refuses an invalid decision.
    fn finish(
        &self,
        planned: PlannedRequest<'_>,
        rows: Option<RequestRows>,
        is_valid: bool,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let PlannedRequest { request, lease_answers, mut taken, .. } = planned;
        let refuses = |answer: &Answer| !answer.outcome.admitted;
        let (admitted, rows) = match rows {
            Some((admitted, rows)) => (admitted && is_valid, rows),
            None => (!lease_answers.iter().flatten().any(refuses), SmallVec::new()),
        };
        if admitted {
            taken.spent.clear();
        }
        drop(taken);
        let (mut rows, mut peek_admitted) = (rows.into_iter(), true);
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
                    let refusal = self.grace_answer(charge).filter(|_| !is_valid);
                    refusal.unwrap_or_else(|| self.show_leased(charge, request.intent, row))
                }
            };
            if !admitted {
                show_refunded(&mut answer);
            }
            peek_admitted &= answer.outcome.admitted || !charge.mode.is_enforced();
            answers.push(answer);
        }
        // A peek counts the units of this process's lease, which the store does not know.
        answers.finish(if request.intent == Intent::Peek { peek_admitted } else { admitted });
        Ok(())
    }

    /// Converts a row of the store to the limit's own view: its capacity, and the units of this
    /// process's lease.
    fn show_leased(&self, charge: &Charge<'_>, intent: Intent, mut answer: Answer) -> Answer {
        let Some(leased) = self.leases.leased_limit(charge.params_id) else { return answer };
        answer.outcome.limit = leased.capacity;
        match intent {
            Intent::Take => self.leases.record_direct_decision(charge, leased, &answer),
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
    pub(super) fn named_charge(&self, charge: &Charge<'_>, called_us: u64) -> NamedCharge {
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
        let params = LimitParams::FixedWindow(FixedWindow::new(Rate::NOTHING));
        NamedCharge::new(&self.namer, &Charge { params: &params, ..*charge }, 0)
    }
}

impl PlannedRequest<'_> {
    fn needs_store(&self) -> bool {
        self.request.charges.is_empty() || self.lease_answers.iter().any(Option::is_none)
    }
}
