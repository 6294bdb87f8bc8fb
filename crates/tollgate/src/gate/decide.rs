//! The one way from a question to its answer: deny cache, store, failure policy, counters.

use super::request::{DecidedRows, DecisionBuffers, DecisionRequest, FromAnswer, recycle_vec};
use crate::deny_cache::{DenyCache, InvalidationEpochs, SingleFlight};
use crate::{Gate, Row, Rules};
use smallvec::SmallVec;
use tollgate_core::Intent;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::Selected;
use tollgate_store::{Adjustment, Answers, Charge, Store, StoreCall, StoreError, StoreReply};

/// A question that the store could not answer at once.
struct PendingDecision<'c, R> {
    rest: R,
    lookup: Option<DenyCacheLookup<'c>>,
}

/// What the deny cache said before the store was asked.
struct DenyCacheLookup<'c> {
    /// Which requests it answered; empty where it answered none.
    answered: SmallVec<[bool; 8]>,
    epochs: InvalidationEpochs,
    flight: SingleFlight<'c>,
}

impl DenyCacheLookup<'_> {
    #[inline]
    fn answered(this: Option<&Self>) -> &[bool] {
        this.map_or(&[], |recollection| &recollection.answered)
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
        mut question: DecisionRequest<'a, 'r>,
        (answers, memory): (&'a mut Answers, &'a mut DecisionBuffers),
        rows: Vec<R>,
        conclude: impl FnOnce(&DecisionRequest<'a, 'r>, DecidedRows<R>, &Answers) -> T + Send + 'a,
    ) -> StoreReply<'a, T, S::Undecided> {
        let mut told = DecidedRows { allowed: true, rows, limit_indices: SmallVec::new() };
        match self.begin(&mut question, answers, &mut told) {
            None => {
                let concluded = conclude(&question, told, answers);
                memory.recycle(question);
                StoreReply::Now(concluded)
            }
            Some(pending) => StoreReply::later(pending.rest, async move {
                self.finish_decision(&question, pending, answers, &mut told).await;
                let concluded = conclude(&question, told, answers);
                memory.recycle(question);
                concluded
            }),
        }
    }

    /// Phase one: all that needs no other process.
    fn begin<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        question: &mut DecisionRequest<'_, 'r>,
        answers: &mut Answers,
        told: &mut DecidedRows<R>,
    ) -> Option<PendingDecision<'c, S::Undecided>> {
        let memory = std::mem::take(&mut question.requests);
        let deny_cache = self.deny_cache.as_ref();
        let recollection =
            deny_cache.map(|deny_cache| self.check_deny_cache(deny_cache, question, told));
        let known = DenyCacheLookup::answered(recollection.as_ref());
        let requests = question.requests(known, memory);
        if requests.is_empty() {
            return None;
        }
        let left = self.store.begin(question.now_us, StoreCall::Decide(&requests), answers);
        if requests.spilled() {
            question.requests = recycle_vec(requests.into_vec());
        }
        match left {
            Some(rest) => Some(PendingDecision { rest, lookup: recollection }),
            None => {
                self.push_rows(question, None, known, answers, told);
                if let Some(recollection) = recollection {
                    self.update_deny_cache(question, recollection, answers);
                }
                None
            }
        }
    }

    /// Phase two: the store.
    async fn finish_decision<'r, R: FromAnswer<'r>>(
        &self,
        question: &DecisionRequest<'_, 'r>,
        PendingDecision { rest, lookup: recollection }: PendingDecision<'_, S::Undecided>,
        answers: &mut Answers,
        told: &mut DecidedRows<R>,
    ) {
        let known = DenyCacheLookup::answered(recollection.as_ref());
        let requests = question.requests(known, Vec::new());
        let call = StoreCall::Decide(&requests);
        let decided = self.store.finish(question.now_us, call, rest, answers).await;
        let is_answered = decided.is_ok();
        self.push_rows(question, decided.err(), known, answers, told);
        if let Some(recollection) = recollection.filter(|_| is_answered) {
            self.update_deny_cache(question, recollection, answers);
        }
    }

    /// Answers as each limit does without the store, which failed.
    pub(crate) fn decide_without_store<'r>(
        &self,
        question: &DecisionRequest<'_, 'r>,
        error: StoreError,
        answers: &mut Answers,
        rows: Vec<Row<'r>>,
    ) -> DecidedRows<Row<'r>> {
        let mut told = DecidedRows { allowed: true, rows, limit_indices: SmallVec::new() };
        self.push_rows(question, Some(error), &[], answers, &mut told);
        told
    }

    /// Adds the rows of the requests that the deny cache did not answer.
    fn push_rows<'r, R: FromAnswer<'r>>(
        &self,
        question: &DecisionRequest<'_, 'r>,
        error: Option<StoreError>,
        known: &[bool],
        answers: &mut Answers,
        told: &mut DecidedRows<R>,
    ) {
        if let Some(error) = &error {
            self.errors.count(error);
        }
        let rules = question.rules;
        for (place, limits) in question.unanswered(known).enumerate() {
            let asked = &question.limits[limits.clone()];
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
    fn update_deny_cache(
        &self,
        question: &DecisionRequest<'_, '_>,
        DenyCacheLookup { answered: known, epochs: moment, flight }: DenyCacheLookup<'_>,
        answers: &Answers,
    ) {
        let Some(deny_cache) = &self.deny_cache else { return };
        let state = |charge: &Charge<'_>| self.store.state_key(charge);
        for (place, limits) in question.unanswered(&known).enumerate() {
            let (asked, charges) =
                (&question.limits[limits.clone()], &question.charges[limits.clone()]);
            // A replica may have answered a peek, and no decision may follow from a replica.
            if asked[0].intent != Intent::Take {
                continue;
            }
            let (allowed, rows) = answers.get(place).unwrap_or((true, &[]));
            let forgets = moment.get(limits).unwrap_or_default();
            match allowed {
                true => deny_cache.mark_spent(charges),
                false => deny_cache.learn(question, asked, charges, rows, state, forgets),
            }
        }
        flight.complete();
    }

    /// Adds the rows of the requests that the deny cache refuses.
    fn check_deny_cache<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        deny_cache: &'c DenyCache,
        question: &DecisionRequest<'_, 'r>,
        told: &mut DecidedRows<R>,
    ) -> DenyCacheLookup<'c> {
        let mut flight = SingleFlight::default();
        // Debts must reach the store even when a limit refuses.
        let owes = |charge: &Charge<'_>| charge.mode.owed().is_some_and(|units| units > 0);
        let recall = |n: usize| {
            let (limits, before) = (question.limit_range(n), told.rows.len());
            let first = limits.start;
            let (asked, charges) = (&question.limits[limits.clone()], &question.charges[limits]);
            if !question.uses_deny_cache || charges.iter().any(owes) {
                return false;
            }
            let rows = (&mut told.rows, &mut told.limit_indices, first);
            if deny_cache.lookup(question, asked, charges, rows, &mut flight).is_none() {
                return false;
            }
            told.allowed = false;
            if asked[0].counts {
                for (row, limit) in told.rows[before..].iter().zip(&told.limit_indices[before..]) {
                    let selected = &question.limits[*limit].selected;
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
            question.unanswered(&known).for_each(|limits| told.limit_indices.extend(limits));
        } else {
            known.clear();
        }
        let moment = deny_cache.epochs(question.rules, &question.limits, &question.charges);
        DenyCacheLookup { answered: known, epochs: moment, flight }
    }

    /// Has the store apply changes, and forgets the refusals of the keys that they concern.
    pub(crate) fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: Vec<Adjustment<'a>>,
    ) -> StoreReply<'a, Result<Answers, StoreError>, S::Undecided> {
        let mut answers = Answers::default();
        if adjustments.is_empty() {
            return StoreReply::Now(Ok(answers));
        }
        let left = self.store.begin(now_us, StoreCall::Adjust(&adjustments), &mut answers);
        let Some(rest) = left else {
            self.forget_refusals(&adjustments);
            return StoreReply::Now(Ok(answers));
        };
        StoreReply::later(rest, async move {
            let call = StoreCall::Adjust(&adjustments);
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
        let inline = || &self.inline[rules.inline_index(selected.limit)];
        rules.counters(selected.index).unwrap_or_else(inline).count(row.counted());
    }
}
