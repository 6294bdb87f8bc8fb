//! Decides requests: from leases where they suffice, in the store where they do not, all or nothing
//! in either case.

use super::RedisStore;
use super::batch::queue::{BATCH_REQUESTS_MAX, RequestRows};
use super::batch::rows::{invalid_reply, push_rows};
use super::batch::{DecideRequest, NamedCharge};
use super::lease::{LeaseAddress, LeaseDecision, LeasedLimit, Leases};
use crate::lease::SpentUnits;
use crate::{Answer, Answers, Charge, Mode, Request, StoreError};
use smallvec::SmallVec;
use std::time::Duration;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};

/// Leased limits of one request that are decided on the calling thread. More of them are decided by
/// the store.
const LOCAL_MOST: usize = 8;

/// What of a batch has not been decided on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndecidedRequests {
    /// The first request that was not.
    first: usize,
    /// Whether its leases were tried and did not suffice.
    leases_tried: bool,
    /// How much of the deadline has been used by whatever came before.
    spent: Duration,
}

impl UndecidedRequests {
    /// The same for a request that has waited for so long already, since a request has one deadline
    /// and not one for each of its calls.
    #[must_use]
    pub fn after(self, spent: Duration) -> Self {
        Self { spent, ..self }
    }
}

/// Units that are put back unless the request is admitted, whatever becomes of who asked.
struct SpentGuard<'a> {
    leases: &'a Leases,
    spent: Vec<(LeaseAddress, SpentUnits)>,
}

impl Drop for SpentGuard<'_> {
    fn drop(&mut self) {
        self.spent.iter().for_each(|(address, spent)| self.leases.refund(*address, spent));
    }
}

/// How one request is decided.
struct PlannedRequest<'a> {
    request: &'a Request<'a>,
    /// For each charge what was decided here.
    lease_answers: Vec<Option<Answer>>,
    taken: SpentGuard<'a>,
    ask: Option<DecideRequest>,
}

impl RedisStore {
    /// Answers those of `requests`, from the first on, for which leases suffice; allocates nothing.
    #[inline]
    pub(super) fn decide_locally(
        &self,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) -> Option<UndecidedRequests> {
        if !self.leases.is_enabled() {
            return Some(UndecidedRequests::default());
        }
        for (from, request) in requests.iter().enumerate() {
            let decided = match request.charges {
                [charge] => self.decide_one_locally(charge, request.intent, answers),
                charges => self.decide_many_locally(charges, request.intent, answers),
            };
            if let Err(rest) = decided {
                return Some(UndecidedRequests { first: from, ..rest });
            }
        }
        None
    }

    #[inline]
    fn decide_one_locally(
        &self,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), UndecidedRequests> {
        let rest = UndecidedRequests { leases_tried: true, ..UndecidedRequests::default() };
        let Some(leased) = self.leased_limit(charge, intent) else {
            return Err(UndecidedRequests { leases_tried: false, ..rest });
        };
        let (answer, admitted) = match self.leases.take(charge, leased).0 {
            LeaseDecision::Spent(answer, _) => (answer, true),
            LeaseDecision::Refused(answer) => (answer, false),
            LeaseDecision::Direct
            | LeaseDecision::Wait
            | LeaseDecision::Failed
            | LeaseDecision::GracePeriod => return Err(rest),
        };
        answers.push(answer);
        answers.finish(admitted);
        Ok(())
    }

    /// The same for several charges, all of which have to be of leased limits.
    fn decide_many_locally(
        &self,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), UndecidedRequests> {
        let rest = UndecidedRequests::default();
        let leased = |charge| self.leased_limit(charge, intent);
        if charges.len() > LOCAL_MOST
            || charges.is_empty()
            || !charges.iter().all(|one| leased(one).is_some())
        {
            return Err(rest);
        }
        let mut spent: [Option<(LeaseAddress, SpentUnits)>; LOCAL_MOST] = [None; LOCAL_MOST];
        let mut refusals = SmallVec::<[LeaseAddress; LOCAL_MOST]>::new();
        let (mut admitted, mut known) = (true, true);
        for (charge, spent) in charges.iter().zip(&mut spent) {
            let Some(leased) = leased(charge) else { continue };
            let (local, address) = self.leases.take(charge, leased);
            match local {
                LeaseDecision::Spent(answer, units) => {
                    *spent = Some((address, units));
                    answers.push(answer);
                }
                LeaseDecision::Refused(answer) => {
                    admitted = false;
                    refusals.push(address);
                    answers.push(answer);
                }
                LeaseDecision::Direct
                | LeaseDecision::Wait
                | LeaseDecision::Failed
                | LeaseDecision::GracePeriod => known = false,
            }
        }
        if !(known && admitted) {
            spent.iter().flatten().for_each(|(at, units)| self.leases.refund(*at, units));
        }
        if !known {
            refusals.into_iter().for_each(|address| self.leases.uncount_refusal(address));
            answers.discard_current_rows();
            return Err(UndecidedRequests { leases_tried: true, ..rest });
        }
        if !admitted {
            answers.current_rows().iter_mut().for_each(show_refunded);
        }
        answers.finish(admitted);
        Ok(())
    }

    /// The terms of a charge that can be taken from a lease.
    #[inline]
    fn leased_limit(&self, charge: &Charge<'_>, intent: Intent) -> Option<&LeasedLimit> {
        let plain = charge.mode == Mode::Enforce && charge.penalty.is_none();
        // Nothing is taken for nothing, nor by those who only look.
        let takes = charge.cost > 0 && intent == Intent::Take;
        if plain && takes { self.leases.leased_limit(charge.params_id) } else { None }
    }

    /// Decides what [`decide_locally`](Self::decide_locally) left of the same requests.
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
            // One part after the other, so that a key's requests are decided in the order asked.
            for requests in requests.chunks(BATCH_REQUESTS_MAX) {
                if !self.has_leased_limit(requests) {
                    let ask = |request| DecideRequest::new(&self.namer, request, called_us);
                    let asks = requests.iter().map(ask).collect();
                    for (admitted, rows) in self.servers.decide(now_us, asks).await? {
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

    /// Whether a limit of these requests is leased.
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
        let asks: SmallVec<_> = planned.iter_mut().filter_map(|one| one.ask.take()).collect();
        let decided = match asks.is_empty() {
            true => SmallVec::new(),
            false => self.servers.decide(now_us, asks).await?,
        };
        let mut decided = decided.into_iter();
        for one in planned {
            let rows = match one.needs_store() {
                true => Some(decided.next().ok_or_else(invalid_reply)?),
                false => None,
            };
            self.finish(one, rows, answers)?;
        }
        Ok(())
    }

    /// Takes from leases what they have, and asks the store for the rest.
    async fn plan<'a>(
        &'a self,
        request: &'a Request<'a>,
        tried: bool,
        called_us: u64,
    ) -> Result<PlannedRequest<'a>, StoreError> {
        let Request { charges, intent } = *request;
        let taken = SpentGuard { leases: &self.leases, spent: Vec::new() };
        let mut planned = PlannedRequest { request, lease_answers: Vec::new(), taken, ask: None };
        for charge in charges {
            let local = match self.leased_limit(charge, intent) {
                None => None,
                Some(leased) => {
                    let leases = &self.leases;
                    Some(leases.take_or_wait(&self.servers, charge, leased, tried).await?)
                }
            };
            let answer = match local {
                Some((LeaseDecision::Spent(answer, spent), address)) => {
                    planned.taken.spent.push((address, spent));
                    Some(answer)
                }
                Some((LeaseDecision::Refused(answer), _)) => Some(answer),
                Some((LeaseDecision::GracePeriod, _)) => self.grace_answer(charge)?,
                _ if intent == Intent::Peek || self.is_store_trusted(charge).await? => None,
                _ => self.grace_answer(charge)?,
            };
            planned.lease_answers.push(answer);
        }
        if planned.needs_store() {
            let lines =
                charges.iter().zip(&planned.lease_answers).filter_map(
                    |(charge, here)| match here {
                        None => Some(self.named_charge(charge, called_us)),
                        // In its place stands one that refuses too, so that all others say what
                        // they know and count what they count.
                        Some(answer) if !answer.outcome.admitted => {
                            Some(self.always_refusing(charge))
                        }
                        Some(_) => None,
                    },
                );
            planned.ask = Some(DecideRequest { intent, charges: lines.collect() });
        }
        Ok(planned)
    }

    /// Whether the store can decide a charge: what others hold of a leased limit counts in its
    /// state only as long as it keeps what it acknowledged.
    async fn is_store_trusted(&self, charge: &Charge<'_>) -> Result<bool, StoreError> {
        let Some(leased) = self.leases.leased_limit(charge.params_id) else { return Ok(true) };
        let slot =
            self.servers.slot(|| self.namer.state_key(charge.limit, charge.key, charge.params));
        self.leases.confirm_primary(&self.servers, slot, leased.terms.quiet_us).await
    }

    /// What a leased limit says while the store is not sure.
    fn grace_answer(&self, charge: &Charge<'_>) -> Result<Option<Answer>, StoreError> {
        self.leases.leased_limit(charge.params_id).map(LeasedLimit::grace_answer).transpose()
    }

    /// Puts the rows of a request together, in the order of its charges.
    fn finish(
        &self,
        planned: PlannedRequest<'_>,
        rows: Option<RequestRows>,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let PlannedRequest { request, lease_answers: here, mut taken, .. } = planned;
        let refuses = |answer: &Answer| !answer.outcome.admitted;
        let (admitted, rows) = match rows {
            Some((admitted, rows)) => (admitted, rows),
            None => (!here.iter().flatten().any(refuses), SmallVec::new()),
        };
        if admitted {
            taken.spent.clear();
        }
        drop(taken);
        let (mut rows, mut looked) = (rows.into_iter(), true);
        for (charge, own) in request.charges.iter().zip(here) {
            let mut answer = match own {
                Some(answer) => {
                    if refuses(&answer) {
                        rows.next();
                    }
                    answer
                }
                None => {
                    self.show_leased(charge, request.intent, rows.next().ok_or_else(invalid_reply)?)
                }
            };
            if !admitted {
                show_refunded(&mut answer);
            }
            looked &= answer.outcome.admitted || !charge.mode.is_enforced();
            answers.push(answer);
        }
        // What is held counts for those who look as well, and the store does not know of it.
        answers.finish(if request.intent == Intent::Peek { looked } else { admitted });
        Ok(())
    }

    /// A row of the store as the limit itself would show it, where less than the limit is to be had
    /// at once because others hold some of it.
    fn show_leased(&self, charge: &Charge<'_>, intent: Intent, mut answer: Answer) -> Answer {
        let Some(leased) = self.leases.leased_limit(charge.params_id) else { return answer };
        answer.outcome.limit = leased.capacity;
        match intent {
            Intent::Take => self.leases.record_direct_decision(charge, leased, &answer),
            Intent::Peek if !answer.blocked => {
                let good = self.leases.spendable(charge);
                if charge.cost <= good {
                    answer.outcome.admitted = true;
                    answer.outcome.retry_after_us = Some(0);
                }
                let remaining = answer.outcome.remaining.saturating_add(good);
                answer.outcome.remaining = remaining.min(leased.capacity);
            }
            Intent::Peek => {}
        }
        answer
    }

    /// A charge under the name of its state, with the numbers that leases leave room for.
    pub(super) fn named_charge(&self, charge: &Charge<'_>, called_us: u64) -> NamedCharge {
        match self.leases.leased_limit(charge.params_id) {
            Some(leased) => {
                let charge = Charge { params: &leased.terms.store_params, ..*charge };
                NamedCharge::new(&self.namer, &charge, called_us)
            }
            None => NamedCharge::new(&self.namer, charge, called_us),
        }
    }
}

impl RedisStore {
    /// A line that refuses whatever it is asked, and of which nothing is kept.
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

/// What a limit that would have admitted says when another one refused.
fn show_refunded(answer: &mut Answer) {
    if let Some(receipt) = answer.receipt.take_if(|_| answer.origin == crate::Origin::Lease) {
        let remaining = answer.outcome.remaining.saturating_add(receipt.cost);
        answer.outcome.remaining = remaining.min(answer.outcome.limit);
    }
}
