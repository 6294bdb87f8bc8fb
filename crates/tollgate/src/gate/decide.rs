//! The one way from a question to its answer: deny cache, store, failure policy, counters.

use crate::deny_cache::{DenyCache, Flight, Moment};
use crate::{Gate, Row, Rules, Source};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::Intent;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::Selected;
use tollgate_store::{
    Adjustment, Answer, Answers, Call, Charge, Reply, Request, Store, StoreError,
};

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
pub(crate) struct Told<R> {
    /// Whether the request may pass, of one request.
    pub(crate) allowed: bool,
    pub(crate) rows: Vec<R>,
    /// Which limit each row is of. Empty: all limits have a row, in their order.
    order: SmallVec<[usize; 4]>,
}

/// What is made of one limit's answer: a [`Row`], or less where nobody shows all of it.
pub(crate) trait FromAnswer<'r>: From<Row<'r>> {
    fn from_answer(rules: &'r Rules, selected: &Selected<'_>, answer: &Answer) -> Self;

    /// What the counters count: the source, whether the limit admits, and whether it refuses the
    /// request.
    fn counted(&self) -> (Source, bool, bool);
}

/// A question that the store could not answer at once.
struct Pending<'c, R> {
    rest: R,
    recollection: Option<Recollection<'c>>,
}

/// What the deny cache said before the store was asked.
struct Recollection<'c> {
    /// Which requests it answered; empty where it answered none.
    known: SmallVec<[bool; 8]>,
    moment: Moment,
    flight: Flight<'c>,
}

impl Recollection<'_> {
    #[inline]
    fn known(this: Option<&Self>) -> &[bool] {
        this.map_or(&[], |recollection| &recollection.known)
    }
}

impl<'a, 'r: 'a> Question<'a, 'r> {
    #[inline]
    pub(crate) fn new(rules: &'r Rules, now_us: u64, memory: &mut QuestionMemory) -> Self {
        let QuestionMemory { asked, charges, requests } = std::mem::take(memory);
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

    /// The limits of each request that the deny cache did not answer.
    #[inline]
    fn unknown(&self, known: &[bool]) -> impl Iterator<Item = Range<usize>> {
        let is_unknown = |n: &usize| known.get(*n) != Some(&true);
        (0..self.len()).filter(is_unknown).map(|n| self.limits(n))
    }

    /// What the store is asked.
    #[inline]
    fn requests<'q>(
        &'q self,
        known: &[bool],
        memory: Vec<Request<'static>>,
    ) -> SmallVec<[Request<'q>; 1]> {
        let request = |limits: Range<usize>| Request {
            intent: self.asked[limits.start].intent,
            charges: &self.charges[limits],
        };
        if self.len() == 1 && known.is_empty() {
            return SmallVec::from_buf([request(self.limits(0))]);
        }
        let mut requests = SmallVec::from_vec(memory);
        requests.extend(self.unknown(known).map(request));
        requests
    }
}

impl QuestionMemory {
    #[inline]
    fn keep(&mut self, question: Question<'_, '_>) {
        let Question { asked, charges, requests, .. } = question;
        *self = Self { asked: emptied(asked), charges: emptied(charges), requests };
    }
}

impl<R> Told<R> {
    /// Whether the rows are those of the first limits, in their order.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.order.iter().enumerate().all(|(place, limit)| place == *limit)
    }

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
    /// Every check, peek, batch and reservation comes here; `conclude` makes of the rows what it
    /// needs.
    ///
    /// Phase one runs at once. Only what the store leaves waits, in a box: front ends hold no more
    /// than a pointer to it.
    #[inline]
    pub(crate) fn decide<'a, 'r: 'a, R: FromAnswer<'r> + Send + 'a, T: 'a>(
        &'a self,
        mut question: Question<'a, 'r>,
        (answers, memory): (&'a mut Answers, &'a mut QuestionMemory),
        rows: Vec<R>,
        conclude: impl FnOnce(&Question<'a, 'r>, Told<R>, &Answers) -> T + Send + 'a,
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
    fn begin<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        question: &mut Question<'_, 'r>,
        answers: &mut Answers,
        told: &mut Told<R>,
    ) -> Option<Pending<'c, S::Rest>> {
        let memory = std::mem::take(&mut question.requests);
        let deny_cache = self.deny_cache.as_ref();
        let recollection = deny_cache.map(|deny_cache| self.recall(deny_cache, question, told));
        let known = Recollection::known(recollection.as_ref());
        let requests = question.requests(known, memory);
        if requests.is_empty() {
            return None;
        }
        let left = self.store.begin(question.now_us, Call::Decide(&requests), answers);
        if requests.spilled() {
            question.requests = emptied(requests.into_vec());
        }
        match left {
            Some(rest) => Some(Pending { rest, recollection }),
            None => {
                self.answer(question, None, known, answers, told);
                if let Some(recollection) = recollection {
                    self.learn(question, recollection, answers);
                }
                None
            }
        }
    }

    /// Phase two: the store.
    async fn finish_question<'r, R: FromAnswer<'r>>(
        &self,
        question: &Question<'_, 'r>,
        Pending { rest, recollection }: Pending<'_, S::Rest>,
        answers: &mut Answers,
        told: &mut Told<R>,
    ) {
        let known = Recollection::known(recollection.as_ref());
        let requests = question.requests(known, Vec::new());
        let call = Call::Decide(&requests);
        let decided = self.store.finish(question.now_us, call, rest, answers).await;
        let is_answered = decided.is_ok();
        self.answer(question, decided.err(), known, answers, told);
        if let Some(recollection) = recollection.filter(|_| is_answered) {
            self.learn(question, recollection, answers);
        }
    }

    /// Answers as each limit does without the store, which failed.
    pub(crate) fn decide_without_store<'r>(
        &self,
        question: &Question<'_, 'r>,
        error: StoreError,
        answers: &mut Answers,
        rows: Vec<Row<'r>>,
    ) -> Told<Row<'r>> {
        let mut told = Told { allowed: true, rows, order: SmallVec::new() };
        self.answer(question, Some(error), &[], answers, &mut told);
        told
    }

    /// Adds the rows of the requests that the deny cache did not answer.
    fn answer<'r, R: FromAnswer<'r>>(
        &self,
        question: &Question<'_, 'r>,
        error: Option<StoreError>,
        known: &[bool],
        answers: &mut Answers,
        told: &mut Told<R>,
    ) {
        if let Some(error) = &error {
            self.errors.count(error);
        }
        let rules = question.rules;
        for (place, limits) in question.unknown(known).enumerate() {
            let asked = &question.asked[limits.clone()];
            if error.is_some() {
                let charges = &question.charges[limits];
                told.allowed =
                    self.without_store(question, asked, charges, answers, &mut told.rows);
                continue;
            }
            let (allowed, rows) = answers.get(place).unwrap_or((true, &[]));
            told.allowed = allowed;
            for (one, answer) in asked.iter().zip(rows) {
                let row = R::from_answer(rules, &one.selected, answer);
                if one.counts {
                    self.count(rules, &one.selected, &row);
                }
                told.rows.push(row);
            }
        }
    }

    /// Has the deny cache learn what the store said.
    // Not inlined: a store in this process has no deny cache.
    #[inline(never)]
    fn learn(
        &self,
        question: &Question<'_, '_>,
        Recollection { known, moment, flight }: Recollection<'_>,
        answers: &Answers,
    ) {
        let Some(deny_cache) = &self.deny_cache else { return };
        let state = |charge: &Charge<'_>| self.store.place(charge);
        for (place, limits) in question.unknown(&known).enumerate() {
            let (asked, charges) =
                (&question.asked[limits.clone()], &question.charges[limits.clone()]);
            // A replica may have answered a peek, and no decision may follow from a replica.
            if asked[0].intent != Intent::Take {
                continue;
            }
            let (allowed, rows) = answers.get(place).unwrap_or((true, &[]));
            let forgets = moment.get(limits).unwrap_or_default();
            match allowed {
                true => deny_cache.spend(charges),
                false => deny_cache.learn(question, asked, charges, rows, state, forgets),
            }
        }
        flight.land();
    }

    /// Adds the rows of the requests that the deny cache refuses.
    fn recall<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        deny_cache: &'c DenyCache,
        question: &Question<'_, 'r>,
        told: &mut Told<R>,
    ) -> Recollection<'c> {
        let mut flight = Flight::default();
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
            if deny_cache.recall(question, asked, charges, rows, &mut flight).is_none() {
                return false;
            }
            told.allowed = false;
            if asked[0].counts {
                for (row, limit) in told.rows[before..].iter().zip(&told.order[before..]) {
                    let selected = &question.asked[*limit].selected;
                    // Nothing is known here of what a shadow limit would have said.
                    if selected.limit.mode == Mode::Enforce {
                        self.count(question.rules, selected, row);
                    }
                }
            }
            true
        };
        let mut known: SmallVec<_> = (0..question.len()).map(recall).collect();
        if known.contains(&true) {
            // The rows of the others follow.
            question.unknown(&known).for_each(|limits| told.order.extend(limits));
        } else {
            known.clear();
        }
        let moment = deny_cache.moment(question.rules, &question.asked, &question.charges);
        Recollection { known, moment, flight }
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
    pub(super) fn count<'r>(
        &self,
        rules: &Rules,
        selected: &Selected<'_>,
        row: &impl FromAnswer<'r>,
    ) {
        let inline = || &self.inline[rules.inline_place(selected.limit)];
        rules.counters(selected.index).unwrap_or_else(inline).count(row.counted());
    }
}

/// The same memory for elements that live for another time. Collecting an empty vector into one of
/// the same layout keeps it.
pub(crate) fn emptied<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("it was emptied")).collect()
}
