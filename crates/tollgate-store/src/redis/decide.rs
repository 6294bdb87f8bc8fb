//! Decides requests: from leases where they suffice, in the store where they do not, all or nothing in either case.

use super::RedisStore;
use super::batch::{Ask, Named};
use super::lease::{Address, Leased, Leases, Local};
use super::queue::{BATCH_MOST, Rows};
use super::replay::{push_rows, senseless};
use crate::lease::Spent;
use crate::{Answer, Answers, Charge, Mode, Request, StoreError};
use smallvec::SmallVec;
use std::time::Duration;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, Numbers, Rate};

/// Leased limits of one request that are decided on the calling thread. More of them are decided by the store.
const LOCAL_MOST: usize = 8;

/// What of a batch has not been decided on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rest {
    /// The first request that was not.
    from: usize,
    /// Whether its leases were tried and did not suffice.
    tried: bool,
    /// How much of the deadline has been used by whatever came before.
    spent: Duration,
}

impl Rest {
    /// The same for a request that has waited for so long already, since a request has one deadline and not one for each of its calls.
    #[must_use]
    pub fn after(self, spent: Duration) -> Self {
        Self { spent, ..self }
    }
}

/// Units that are put back unless the request is admitted, whatever becomes of who asked.
struct Taken<'a> {
    leases: &'a Leases,
    spent: Vec<(Address, Spent)>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.spent.iter().for_each(|(address, spent)| self.leases.put_back(*address, spent));
    }
}

/// How one request is decided.
struct Planned<'a> {
    request: &'a Request<'a>,
    /// For each charge what was decided here.
    here: Vec<Option<Answer>>,
    taken: Taken<'a>,
    ask: Option<Ask>,
}

impl RedisStore {
    /// Answers those of `requests`, from the first on, for which leases suffice; allocates nothing.
    #[inline]
    pub(super) fn decide_locally(
        &self,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) -> Option<Rest> {
        if !self.leases.are_used() {
            return Some(Rest::default());
        }
        for (from, request) in requests.iter().enumerate() {
            let decided = match request.charges {
                [charge] => self.one_locally(charge, request.intent, answers),
                charges => self.many_locally(charges, request.intent, answers),
            };
            if let Err(rest) = decided {
                return Some(Rest { from, ..rest });
            }
        }
        None
    }

    #[inline]
    fn one_locally(
        &self,
        charge: &Charge<'_>,
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), Rest> {
        let rest = Rest { tried: true, ..Rest::default() };
        let Some(leased) = self.leased(charge, intent) else {
            return Err(Rest { tried: false, ..rest });
        };
        let (answer, admitted) = match self.leases.take(charge, leased).0 {
            Local::Spent(answer, _) => (answer, true),
            Local::Refused(answer) => (answer, false),
            Local::Direct | Local::Wait | Local::Failed | Local::Quiet => return Err(rest),
        };
        answers.push(answer);
        answers.finish(admitted);
        Ok(())
    }

    /// The same for several charges, all of which have to be of leased limits.
    fn many_locally(
        &self,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
    ) -> Result<(), Rest> {
        let rest = Rest::default();
        let leased = |charge| self.leased(charge, intent);
        if charges.len() > LOCAL_MOST
            || charges.is_empty()
            || !charges.iter().all(|one| leased(one).is_some())
        {
            return Err(rest);
        }
        let mut spent: [Option<(Address, Spent)>; LOCAL_MOST] = [None; LOCAL_MOST];
        let mut refusals = SmallVec::<[Address; LOCAL_MOST]>::new();
        let (mut admitted, mut known) = (true, true);
        for (charge, spent) in charges.iter().zip(&mut spent) {
            let Some(leased) = leased(charge) else { continue };
            let (local, address) = self.leases.take(charge, leased);
            match local {
                Local::Spent(answer, units) => {
                    *spent = Some((address, units));
                    answers.push(answer);
                }
                Local::Refused(answer) => {
                    admitted = false;
                    refusals.push(address);
                    answers.push(answer);
                }
                Local::Direct | Local::Wait | Local::Failed | Local::Quiet => known = false,
            }
        }
        if !(known && admitted) {
            spent.iter().flatten().for_each(|(at, units)| self.leases.put_back(*at, units));
        }
        if !known {
            refusals.into_iter().for_each(|address| self.leases.unrefuse(address));
            answers.reopen();
            return Err(Rest { tried: true, ..rest });
        }
        if !admitted {
            answers.open_rows().iter_mut().for_each(untaken);
        }
        answers.finish(admitted);
        Ok(())
    }

    /// The terms of a charge that can be taken from a lease.
    #[inline]
    fn leased(&self, charge: &Charge<'_>, intent: Intent) -> Option<&Leased> {
        let plain = charge.mode == Mode::Enforce && charge.penalty.is_none();
        // Nothing is taken for nothing, nor by those who only look.
        let takes = charge.cost > 0 && intent == Intent::Take;
        if plain && takes { self.leases.of(charge.ticket) } else { None }
    }

    /// Decides what [`decide_locally`](Self::decide_locally) left of the same requests.
    pub(super) async fn decide_rest(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        rest: Rest,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let called_us = now_us;
        let now_us = self.options.at(now_us);
        let requests = requests.get(rest.from..).unwrap_or_default();
        if requests.iter().all(|request| request.charges.is_empty()) {
            requests.iter().for_each(|_| answers.finish(true));
            return Ok(());
        }
        self.in_time_after(rest.spent, async {
            let mut tried = rest.tried;
            // One part after the other, so that a key's requests are decided in the order asked.
            for requests in requests.chunks(BATCH_MOST) {
                if !self.leases_any(requests) {
                    let ask = |request| Ask::new(&self.namer, request, called_us);
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
    fn leases_any(&self, requests: &[Request<'_>]) -> bool {
        let mut charges = requests.iter().flat_map(|request| request.charges);
        charges.any(|charge| self.leases.of(charge.ticket).is_some())
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
            let rows = match one.is_asked() {
                true => Some(decided.next().ok_or_else(senseless)?),
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
    ) -> Result<Planned<'a>, StoreError> {
        let Request { charges, intent } = *request;
        let taken = Taken { leases: &self.leases, spent: Vec::new() };
        let mut planned = Planned { request, here: Vec::new(), taken, ask: None };
        for charge in charges {
            let local = match self.leased(charge, intent) {
                None => None,
                Some(leased) => {
                    let leases = &self.leases;
                    Some(leases.take_in_time(&self.servers, charge, leased, tried).await?)
                }
            };
            let answer = match local {
                Some((Local::Spent(answer, spent), address)) => {
                    planned.taken.spent.push((address, spent));
                    Some(answer)
                }
                Some((Local::Refused(answer), _)) => Some(answer),
                Some((Local::Quiet, _)) => self.while_quiet(charge)?,
                _ if intent == Intent::Peek || self.is_sure(charge).await? => None,
                _ => self.while_quiet(charge)?,
            };
            planned.here.push(answer);
        }
        if planned.is_asked() {
            let lines = charges.iter().zip(&planned.here).filter_map(|(charge, here)| match here {
                None => Some(self.named(charge, called_us)),
                // In its place stands one that refuses too, so that all others say what they know and count what they count.
                Some(answer) if !answer.outcome.admitted => Some(self.refusing(charge)),
                Some(_) => None,
            });
            planned.ask = Some(Ask { intent, lines: lines.collect() });
        }
        Ok(planned)
    }

    /// Whether the store can decide a charge: what others hold of a leased limit counts in its state only as long as it keeps what it acknowledged.
    async fn is_sure(&self, charge: &Charge<'_>) -> Result<bool, StoreError> {
        let Some(leased) = self.leases.of(charge.ticket) else { return Ok(true) };
        let slot = self.servers.slot(|| self.namer.name(charge.limit, charge.key, charge.numbers));
        self.leases.confirm(&self.servers, slot, leased.terms.quiet_us).await
    }

    /// What a leased limit says while the store is not sure.
    fn while_quiet(&self, charge: &Charge<'_>) -> Result<Option<Answer>, StoreError> {
        self.leases.of(charge.ticket).map(Leased::while_quiet).transpose()
    }

    /// Puts the rows of a request together, in the order of its charges.
    fn finish(
        &self,
        planned: Planned<'_>,
        rows: Option<Rows>,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let Planned { request, here, mut taken, .. } = planned;
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
                None => self.shown(charge, request.intent, rows.next().ok_or_else(senseless)?),
            };
            if !admitted {
                untaken(&mut answer);
            }
            looked &= answer.outcome.admitted || !charge.mode.is_enforced();
            answers.push(answer);
        }
        // What is held counts for those who look as well, and the store does not know of it.
        answers.finish(if request.intent == Intent::Peek { looked } else { admitted });
        Ok(())
    }

    /// A row of the store as the limit itself would show it, where less than the limit is to be had at once because others hold some of it.
    fn shown(&self, charge: &Charge<'_>, intent: Intent, mut answer: Answer) -> Answer {
        let Some(leased) = self.leases.of(charge.ticket) else { return answer };
        answer.outcome.limit = leased.capacity;
        match intent {
            Intent::Take => self.leases.told(charge, leased, &answer),
            Intent::Peek if !answer.blocked => {
                let good = self.leases.good(charge);
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
    pub(super) fn named(&self, charge: &Charge<'_>, called_us: u64) -> Named {
        match self.leases.of(charge.ticket) {
            Some(leased) => {
                let charge = Charge { numbers: &leased.terms.central, ..*charge };
                Named::new(&self.namer, &charge, called_us)
            }
            None => Named::new(&self.namer, charge, called_us),
        }
    }
}

impl RedisStore {
    /// A line that refuses whatever it is asked, and of which nothing is kept.
    fn refusing(&self, charge: &Charge<'_>) -> Named {
        let numbers = Numbers::FixedWindow(FixedWindow::new(Rate::NOTHING));
        Named::new(&self.namer, &Charge { numbers: &numbers, ..*charge }, 0)
    }
}

impl Planned<'_> {
    fn is_asked(&self) -> bool {
        self.request.charges.is_empty() || self.here.iter().any(Option::is_none)
    }
}

/// What a limit that would have admitted says when another one refused.
fn untaken(answer: &mut Answer) {
    if let Some(receipt) = answer.receipt.take_if(|_| answer.origin == crate::Origin::Lease) {
        let remaining = answer.outcome.remaining.saturating_add(receipt.cost);
        answer.outcome.remaining = remaining.min(answer.outcome.limit);
    }
}
