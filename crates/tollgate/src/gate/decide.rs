//! The one way from a question to its answer: deny cache, store, failure policy, counters.

use crate::deny_cache::{DenyCache, Flight, Moment};
use crate::{Gate, Row, Rules};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::Intent;
use tollgate_policy::policy::Selected;
use tollgate_store::{Adjustment, Answers, Call, Charge, Reply, Request, Store, StoreError};

/// Limits to be asked, each with its charge.
#[derive(Debug)]
pub(crate) struct Question<'a, 'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) now_us: u64,
    /// Whether the deny cache may answer. It knows only refusals, so it cannot show all figures.
    pub(crate) recall: bool,
    /// One request with all charges. Otherwise every charge is a request of its own.
    pub(crate) together: bool,
    pub(crate) asked: Vec<Asked<'a>>,
    pub(crate) charges: Vec<Charge<'a>>,
    /// Always empty; it is here for its memory.
    requests: Vec<Request<'static>>,
}

/// What the last question was written in, for the next one.
#[derive(Debug, Default)]
pub(crate) struct QuestionMemory {
    asked: Vec<Asked<'static>>,
    charges: Vec<Charge<'static>>,
    requests: Vec<Request<'static>>,
}

/// One limit of a [`Question`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) selected: Selected<'a>,
    pub(crate) intent: Intent,
    /// Whether the limit's counters count its answer.
    pub(crate) counts: bool,
    /// The place of its request in a batch.
    pub(crate) place: usize,
}

/// The answer to a [`Question`].
#[derive(Debug)]
pub(crate) struct Told<'r> {
    /// Whether the request may pass, of one request.
    pub(crate) allowed: bool,
    pub(crate) rows: Vec<Row<'r>>,
    /// Which limit each row is of. Empty: all limits have a row, in their order.
    order: SmallVec<[usize; 4]>,
}

/// A question that the store could not answer at once.
struct Pending<'c, R> {
    rest: R,
    known: Known,
    moment: Moment,
    flight: Flight<'c>,
}

/// Which requests the deny cache answered; empty without one.
type Known = SmallVec<[bool; 8]>;

impl<'a, 'r: 'a> Question<'a, 'r> {
    #[inline]
    pub(crate) fn new(rules: &'r Rules, now_us: u64, memory: &mut QuestionMemory) -> Self {
        let QuestionMemory { asked, charges, requests } = std::mem::take(memory);
        let (asked, charges) = (emptied(asked), emptied(charges));
        Self { rules, now_us, recall: true, together: true, asked, charges, requests }
    }

    /// Asks about limits of the policy, each with its usual charge.
    #[inline]
    pub(crate) fn ask(
        &mut self,
        selected: impl ExactSizeIterator<Item = Selected<'a>>,
        intent: Intent,
    ) {
        let (rules, counts) = (self.rules, intent == Intent::Take);
        self.asked.extend(selected.map(|selected| Asked { selected, intent, counts, place: 0 }));
        self.charges.extend(self.asked.iter().map(|one| rules.charge(&one.selected)));
    }

    pub(crate) fn push(&mut self, selected: Selected<'a>, charge: Charge<'a>, intent: Intent) {
        let counts = intent == Intent::Take;
        self.asked.push(Asked { selected, intent, counts, place: 0 });
        self.charges.push(charge);
    }
}

impl<'a> Question<'a, '_> {
    /// How many requests there are.
    #[inline]
    fn len(&self) -> usize {
        if self.together { usize::from(!self.asked.is_empty()) } else { self.asked.len() }
    }

    /// The limits of one request.
    #[inline]
    fn limits(&self, request: usize) -> Range<usize> {
        if self.together { 0..self.asked.len() } else { request..request + 1 }
    }

    /// What the store is asked.
    #[inline]
    fn requests<'q>(
        &'q self,
        known: &Known,
        memory: Vec<Request<'static>>,
    ) -> SmallVec<[Request<'q>; 1]> {
        let is_asked = |n: &usize| known.get(*n) != Some(&true);
        let request = |n: usize| {
            let limits = self.limits(n);
            Request { intent: self.asked[limits.start].intent, charges: &self.charges[limits] }
        };
        match self.len() {
            1 if is_asked(&0) => SmallVec::from_buf([request(0)]),
            len => {
                let mut requests = SmallVec::from_vec(emptied(memory));
                requests.extend((0..len).filter(is_asked).map(request));
                requests
            }
        }
    }
}

impl QuestionMemory {
    #[inline]
    fn keep(&mut self, question: Question<'_, '_>) {
        let Question { asked, charges, requests, .. } = question;
        *self = Self { asked: emptied(asked), charges: emptied(charges), requests };
    }
}

impl Told<'_> {
    /// The limit that the row at `place` is of.
    pub(crate) fn limit(&self, place: usize) -> usize {
        self.order.get(place).copied().unwrap_or(place)
    }

    /// The row of the limit, unless the deny cache left it out.
    pub(crate) fn row(&self, limit: usize) -> Option<usize> {
        match self.order.is_empty() {
            true => (limit < self.rows.len()).then_some(limit),
            false => self.order.iter().position(|one| *one == limit),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Asks the deny cache, then the store, then each limit's failure policy, and counts the rows.
    /// Every check, peek, batch and reservation comes here; `conclude` makes of the rows what it needs.
    ///
    /// Phase one runs at once. Only what the store leaves waits, in a box: front ends hold no more
    /// than a pointer to it.
    #[inline]
    pub(crate) fn decide<'a, 'r: 'a, T: 'a>(
        &'a self,
        mut question: Question<'a, 'r>,
        (answers, memory): (&'a mut Answers, &'a mut QuestionMemory),
        rows: Vec<Row<'r>>,
        conclude: impl FnOnce(&Question<'a, 'r>, Told<'r>, &Answers) -> T + Send + 'a,
    ) -> Reply<'a, T, S::Rest> {
        let mut told = Told { allowed: true, rows, order: SmallVec::new() };
        match self.begin(&mut question, answers, &mut told) {
            None => {
                let concluded = conclude(&question, told, answers);
                memory.keep(question);
                Reply::Now(concluded)
            }
            Some(pending) => Reply::later(pending.rest, async move {
                self.finish_question(&question, pending, answers, &mut told).await;
                let concluded = conclude(&question, told, answers);
                memory.keep(question);
                concluded
            }),
        }
    }

    /// Phase one: all that needs no other process.
    fn begin<'c, 'r>(
        &'c self,
        question: &mut Question<'_, 'r>,
        answers: &mut Answers,
        told: &mut Told<'r>,
    ) -> Option<Pending<'c, S::Rest>> {
        let memory = std::mem::take(&mut question.requests);
        let (mut known, mut moment, mut flight) = (Known::new(), Moment::new(), Flight::default());
        if let Some(deny_cache) = &self.deny_cache {
            known = self.recall(deny_cache, question, told, &mut flight);
            moment = deny_cache.moment(question.rules, &question.asked, &question.charges);
        }
        let requests = question.requests(&known, memory);
        if requests.is_empty() {
            return None;
        }
        let left = self.store.begin(question.now_us, Call::Decide(&requests), answers);
        if requests.spilled() {
            question.requests = emptied(requests.into_vec());
        }
        match left {
            Some(rest) => Some(Pending { rest, known, moment, flight }),
            None => {
                self.answer(question, Ok(()), &known, &moment, answers, told);
                flight.land();
                None
            }
        }
    }

    /// Phase two: the store.
    async fn finish_question<'r>(
        &self,
        question: &Question<'_, 'r>,
        pending: Pending<'_, S::Rest>,
        answers: &mut Answers,
        told: &mut Told<'r>,
    ) {
        let Pending { rest, known, moment, flight } = pending;
        let requests = question.requests(&known, Vec::new());
        let call = Call::Decide(&requests);
        let decided = self.store.finish(question.now_us, call, rest, answers).await;
        let is_answered = decided.is_ok();
        self.answer(question, decided, &known, &moment, answers, told);
        if is_answered {
            flight.land();
        }
    }

    /// Answers as each limit does without the store, which failed.
    pub(crate) fn decide_without_store<'r>(
        &self,
        question: &Question<'_, 'r>,
        error: StoreError,
        answers: &mut Answers,
        rows: Vec<Row<'r>>,
    ) -> Told<'r> {
        let mut told = Told { allowed: true, rows, order: SmallVec::new() };
        self.answer(question, Err(error), &Known::new(), &Moment::new(), answers, &mut told);
        told
    }

    /// Adds the rows of the requests that the deny cache did not answer.
    fn answer<'r>(
        &self,
        question: &Question<'_, 'r>,
        decided: Result<(), StoreError>,
        known: &Known,
        moment: &Moment,
        answers: &mut Answers,
        told: &mut Told<'r>,
    ) {
        if let Err(error) = &decided {
            self.errors.count(error);
        }
        let (rules, mut place) = (question.rules, 0);
        for n in (0..question.len()).filter(|n| known.get(*n) != Some(&true)) {
            let (limits, first) = (question.limits(n), told.rows.len());
            let asked = &question.asked[limits.clone()];
            if decided.is_ok() {
                let (allowed, rows) = answers.get(place).unwrap_or((true, &[]));
                let lines = asked.iter().zip(rows);
                told.rows.extend(lines.map(|(one, answer)| rules.row(&one.selected, answer)));
                told.allowed = allowed;
                // A replica may have answered a peek, and no decision may follow from a replica.
                if let Some(deny_cache) = &self.deny_cache
                    && asked[0].intent == Intent::Take
                {
                    let state = |charge: &Charge<'_>| self.store.place(charge);
                    let charges = &question.charges[limits.clone()];
                    let forgets = moment.get(limits.clone()).unwrap_or_default();
                    match allowed {
                        true => deny_cache.spend(charges),
                        false => deny_cache.learn(question, asked, charges, rows, state, forgets),
                    }
                }
            } else {
                let charges = &question.charges[limits.clone()];
                told.allowed =
                    self.without_store(question, asked, charges, answers, &mut told.rows);
            }
            if asked[0].counts {
                let lines = asked.iter().zip(&told.rows[first..]);
                lines.for_each(|(one, row)| self.count(rules, &one.selected, row));
            }
            if !known.is_empty() {
                told.order.extend(limits);
            }
            place += 1;
        }
    }

    /// Adds the rows of the requests that the deny cache refuses.
    fn recall<'c, 'r>(
        &'c self,
        deny_cache: &'c DenyCache,
        question: &Question<'_, 'r>,
        told: &mut Told<'r>,
        flight: &mut Flight<'c>,
    ) -> Known {
        // Debts must reach the store even when a limit refuses.
        let owes = |charge: &Charge<'_>| charge.mode.owed().is_some_and(|units| units > 0);
        let recall = |n: usize| {
            let (limits, before) = (question.limits(n), told.rows.len());
            let first = limits.start;
            let (asked, charges) = (&question.asked[limits.clone()], &question.charges[limits]);
            if !question.recall || charges.iter().any(owes) {
                return false;
            }
            let rows = (&mut told.rows, &mut told.order, first);
            if deny_cache.recall(question, asked, charges, rows, flight).is_none() {
                return false;
            }
            told.allowed = false;
            if asked[0].counts {
                for (row, limit) in told.rows[before..].iter().zip(&told.order[before..]) {
                    // Nothing is known here of what a shadow limit would have said.
                    if row.enforced() {
                        self.count(question.rules, &question.asked[*limit].selected, row);
                    }
                }
            }
            true
        };
        (0..question.len()).map(recall).collect()
    }

    /// Has the store apply changes, and forgets the refusals of the keys that they concern.
    pub(crate) fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: Vec<Adjustment<'a>>,
    ) -> Reply<'a, Result<Answers, StoreError>, S::Rest> {
        let mut answers = Answers::default();
        if adjustments.is_empty() {
            return Reply::Now(Ok(answers));
        }
        let left = self.store.begin(now_us, Call::Adjust(&adjustments), &mut answers);
        let Some(rest) = left else {
            self.forget_refusals(&adjustments);
            return Reply::Now(Ok(answers));
        };
        Reply::later(rest, async move {
            let call = Call::Adjust(&adjustments);
            let adjusted = self.store.finish(now_us, call, rest, &mut answers).await;
            self.forget_refusals(&adjustments);
            adjusted.inspect_err(|error| self.errors.count(error)).map(|()| answers)
        })
    }

    /// Counts a limit's answer, also of a limit that came with the request.
    #[inline]
    fn count(&self, rules: &Rules, selected: &Selected<'_>, row: &Row<'_>) {
        match rules.counters(selected.index) {
            Some(counters) => counters.count(row),
            None => self.inline[rules.inline_place(selected.limit)].count(row),
        }
    }
}

/// The same memory for elements that live for another time. Collecting an empty vector into one of the same layout keeps it.
pub(crate) fn emptied<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("it was emptied")).collect()
}
