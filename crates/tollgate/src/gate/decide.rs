//! The decision: deny cache, store, failure policy, counters, in this order.

use super::failure::WithheldCharges;
use super::request::{
    DecidedRows, DecisionBuffers, DecisionRequest, FromAnswer, RequestedLimit, recycle_vec,
};
use super::{AdjustedCharge, ObservedDecision};
use crate::deny_cache::{DenyCache, InvalidationEpochs, SingleFlight};
use crate::engine::{Gate, Row, Rules, Verdict};
use crate::rules::thread_number;
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::Intent;
use tollgate_policy::limit::Mode;
use tollgate_store::{
    Adjustment, Answers, Charge, Store, StoreCall, StoreError, StoreErrorKind, StoreReply,
};

/// A decision that waits for the store.
struct PendingDecision<'c, R> {
    rest: R,
    lookup: Option<DenyCacheLookup<'c>>,
    withheld: WithheldCharges,
}

/// The deny cache's answer before the store is called.
struct DenyCacheLookup<'c> {
    /// Which requests the cache answered; empty if none.
    answered: SmallVec<[bool; 8]>,
    epochs: InvalidationEpochs,
    flight: SingleFlight<'c>,
}

impl DenyCacheLookup<'_> {
    #[inline]
    fn answered(this: Option<&Self>) -> &[bool] {
        this.map_or(&[], |lookup| &lookup.answered)
    }
}

impl<S: Store> Gate<S> {
    /// Asks the deny cache, then the store, then each limit's failure policy, and counts the rows.
    /// Every check, peek, batch and reservation comes here; `conclude` turns the rows into what
    /// the caller needs.
    ///
    /// Phase one runs at once. Phase two is boxed, so that callers hold only a pointer to it.
    #[inline]
    pub(crate) fn decide<'a, 'r: 'a, R: FromAnswer<'r> + Send + 'a, T: 'a>(
        &'a self,
        mut request: DecisionRequest<'a, 'r>,
        (answers, buffers): (&'a mut Answers, &'a mut DecisionBuffers),
        rows: Vec<R>,
        conclude: impl FnOnce(&DecisionRequest<'a, 'r>, DecidedRows<R>, &Answers) -> T + Send + 'a,
    ) -> StoreReply<'a, T, S::Undecided> {
        let mut decided = DecidedRows { allowed: true, rows, limit_indices: SmallVec::new() };
        match self.begin(&mut request, answers, &mut decided) {
            None => {
                let conclusion = conclude(&request, decided, answers);
                buffers.recycle(request);
                StoreReply::Now(conclusion)
            }
            Some(pending) => StoreReply::later(pending.rest, async move {
                self.finish_decision(&request, pending, answers, &mut decided).await;
                let conclusion = conclude(&request, decided, answers);
                buffers.recycle(request);
                conclusion
            }),
        }
    }

    /// Phase one: everything that needs no other process.
    fn begin<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        request: &mut DecisionRequest<'_, 'r>,
        answers: &mut Answers,
        decided: &mut DecidedRows<R>,
    ) -> Option<PendingDecision<'c, S::Undecided>> {
        let buffer = std::mem::take(&mut request.spare_requests);
        let deny_cache = self.deny_cache.as_ref();
        let lookup = deny_cache.map(|cache| self.check_deny_cache(cache, request, decided));
        let answered = DenyCacheLookup::answered(lookup.as_ref());
        let mut withheld = WithheldCharges::new();
        if !self.store.answers_at_once() && self.slots.has_failed() {
            withheld = self.withhold_lapsed(request);
        }
        let requests = request.store_requests(answered, buffer);
        if requests.is_empty() {
            return None;
        }
        let undecided = self.store.begin(request.now_us, StoreCall::Decide(&requests), answers);
        if requests.spilled() {
            request.spare_requests = recycle_vec(requests.into_vec());
        }
        if let Some(rest) = undecided {
            return Some(PendingDecision { rest, lookup, withheld });
        }
        let is_answered = withheld.is_empty();
        if !is_answered {
            request.fail_withheld(answered, &withheld, answers);
            // The store has refused these requests, so nothing has to be given back.
            self.apply_failure_policies(request, answered, answers);
        }
        self.push_rows(request, answered, answers, decided);
        if let Some(lookup) = lookup.filter(|_| is_answered) {
            self.update_deny_cache(request, lookup, answers);
        }
        None
    }

    /// Phase two: the store.
    async fn finish_decision<'r, R: FromAnswer<'r>>(
        &self,
        request: &DecisionRequest<'_, 'r>,
        PendingDecision { rest, lookup, withheld }: PendingDecision<'_, S::Undecided>,
        answers: &mut Answers,
        decided: &mut DecidedRows<R>,
    ) {
        let answered = DenyCacheLookup::answered(lookup.as_ref());
        let requests = request.store_requests(answered, Vec::new());
        let call = StoreCall::Decide(&requests);
        let finished = self.store.finish(request.now_us, call, rest, answers).await;
        match finished {
            Ok(()) if withheld.is_empty() => {}
            Ok(()) => request.fail_withheld(answered, &withheld, answers),
            Err(error) => request.fail_rows(answered, error.kind, answers),
        }
        self.learn_blocks(request, answered, answers);
        let is_answered = answers.first_failure().is_none();
        if !is_answered {
            let refused = self.apply_failure_policies(request, answered, answers);
            self.give_back_refused(request, refused, answers).await;
        }
        self.push_rows(request, answered, answers, decided);
        if let Some(lookup) = lookup.filter(|_| is_answered) {
            self.update_deny_cache(request, lookup, answers);
        }
    }

    /// Decides by each limit's failure policy alone.
    pub(crate) fn decide_without_store<'r>(
        &self,
        request: &DecisionRequest<'_, 'r>,
        kind: StoreErrorKind,
        answers: &mut Answers,
        rows: Vec<Row<'r>>,
    ) -> DecidedRows<Row<'r>> {
        let mut decided = DecidedRows { allowed: true, rows, limit_indices: SmallVec::new() };
        request.fail_rows(&[], kind, answers);
        self.apply_failure_policies(request, &[], answers);
        self.push_rows(request, &[], answers, &mut decided);
        decided
    }

    /// Adds the rows of the requests that the deny cache did not answer.
    fn push_rows<'r, R: FromAnswer<'r>>(
        &self,
        request: &DecisionRequest<'_, 'r>,
        answered: &[bool],
        answers: &Answers,
        decided: &mut DecidedRows<R>,
    ) {
        if request.candidates > 0 && !request.is_one_request && decided.limit_indices.is_empty() {
            // In a batch, candidates lie between the limits, and have no rows.
            let shown = request.requests().flat_map(|range| request.shown(range));
            decided.limit_indices.extend(shown);
        }
        for (index, range) in request.unanswered(answered).enumerate() {
            let shown = request.shown(range.clone());
            let (limits, charges) = (&request.limits[shown.clone()], &request.charges[shown]);
            let (allowed, rows) = answers.get(index).unwrap_or((true, &[]));
            decided.allowed = allowed;
            let (rules, before) = (request.rules, decided.rows.len());
            let row = |(limit, answer): (&RequestedLimit<'_>, _)| {
                R::from_answer(rules, &limit.selected, answer)
            };
            decided.rows.extend(limits.iter().zip(rows).map(row));
            let counted = limits.iter().zip(charges).zip(&decided.rows[before..]);
            let counted = counted.map(|((limit, charge), row)| (limit, charge, row));
            self.count(request, counted, allowed);
            if request.candidates > 0 {
                self.count_candidates(request, range, rows);
            }
        }
    }

    /// Counts the answers to one request, inline limits included, and shows them to the observer.
    #[inline]
    pub(super) fn count<'r: 'l, 'l, R: FromAnswer<'r> + 'l>(
        &self,
        request: &DecisionRequest<'_, 'r>,
        rows: impl Iterator<Item = (&'l RequestedLimit<'l>, &'l Charge<'l>, &'l R)>,
        allowed: bool,
    ) {
        let (rules, thread) = (request.rules, thread_number());
        let mut decisions: SmallVec<[ObservedDecision<'_>; 4]> = SmallVec::new();
        for (limit, charge, row) in rows.filter(|(limit, ..)| limit.counts) {
            let selected = &limit.selected;
            let inline = || &self.inline[rules.inline_index(selected.limit)];
            let (source, admitted, refuses) = row.counted();
            let counters = rules.counters(selected.index).unwrap_or_else(inline);
            counters.count(thread, (source, admitted, refuses));
            if self.observer.is_none() {
                continue;
            }
            let taken = match charge.mode.owed() {
                Some(units) => units,
                None if allowed && admitted => charge.cost,
                None => 0,
            };
            decisions.push(ObservedDecision {
                now_us: request.now_us,
                selected,
                rules,
                asked: charge.cost,
                taken,
                outcome: row.outcome(),
                source,
                refuses,
            });
        }
        if let (Some(observer), [_, ..]) = (&self.observer, &*decisions) {
            observer.decided(&decisions);
        }
    }

    /// Counts a request by its class.
    #[inline]
    pub(crate) fn count_class(rules: &Rules, verdict: &Verdict<'_>) {
        if let Some(shed) = &verdict.shed
            && let Some(counters) = rules.shed().and_then(|rules| rules.counters(shed.class))
        {
            counters.count(shed, verdict.allowed);
        }
    }

    /// Writes the store's answers to the deny cache.
    // Not inlined: a store in this process has no deny cache.
    #[inline(never)]
    fn update_deny_cache(
        &self,
        request: &DecisionRequest<'_, '_>,
        DenyCacheLookup { answered, epochs, flight }: DenyCacheLookup<'_>,
        answers: &Answers,
    ) {
        let Some(deny_cache) = &self.deny_cache else { return };
        let state_key = |charge: &Charge<'_>| self.store.state_key(charge);
        for (index, range) in request.unanswered(&answered).enumerate() {
            let (limits, charges) =
                (&request.limits[range.clone()], &request.charges[range.clone()]);
            // A replica may have answered a peek, and no decision may follow from a replica.
            if limits[0].intent != Intent::Take {
                continue;
            }
            let (allowed, rows) = answers.get(index).unwrap_or((true, &[]));
            if allowed {
                deny_cache.mark_spent(charges);
            } else if !request.has_candidates(&range) {
                let epochs = epochs.get(range).unwrap_or_default();
                deny_cache.learn(request, limits, charges, rows, state_key, epochs);
            }
        }
        flight.complete();
    }

    /// Adds the rows of the requests that the deny cache refuses.
    fn check_deny_cache<'c, 'r, R: FromAnswer<'r>>(
        &'c self,
        deny_cache: &'c DenyCache,
        request: &DecisionRequest<'_, 'r>,
        decided: &mut DecidedRows<R>,
    ) -> DenyCacheLookup<'c> {
        let mut flight = SingleFlight::default();
        // Debts must reach the store even when a limit refuses.
        let owes = |charge: &Charge<'_>| charge.mode.owed().is_some_and(|units| units > 0);
        let is_refused = |range: Range<usize>| {
            let (first, before) = (range.start, decided.rows.len());
            // Candidates count requests that their limits refuse, too.
            let has_candidates = request.has_candidates(&range);
            let (limits, charges) = (&request.limits[range.clone()], &request.charges[range]);
            let must_call = has_candidates || charges.iter().any(owes);
            if !request.uses_deny_cache || must_call {
                return false;
            }
            let rows = (&mut decided.rows, &mut decided.limit_indices, first);
            if deny_cache.lookup(request, limits, charges, rows, &mut flight).is_none() {
                return false;
            }
            decided.allowed = false;
            let indices = &decided.limit_indices[before..];
            let rows = decided.rows[before..].iter().zip(indices);
            let rows = rows.map(|(row, at)| (&request.limits[*at], &request.charges[*at], row));
            // The cache does not know what a shadow limit would have answered.
            let is_known = |limit: &RequestedLimit<'_>| limit.selected.limit.mode == Mode::Enforce;
            self.count(request, rows.filter(|(limit, ..)| is_known(limit)), false);
            true
        };
        let mut answered: SmallVec<_> = request.requests().map(is_refused).collect();
        if answered.contains(&true) {
            // The rows of the other requests follow.
            let unanswered = request.unanswered(&answered);
            decided.limit_indices.extend(unanswered.flat_map(|limits| request.shown(limits)));
        } else {
            answered.clear();
        }
        let epochs = deny_cache.epochs(request.rules, &request.limits, &request.charges);
        DenyCacheLookup { answered, epochs, flight }
    }

    /// Applies adjustments in the store, and drops the cached refusals of their keys. The observer
    /// sees each.
    pub(crate) fn adjust<'a>(
        &'a self,
        now_us: u64,
        (adjustments, adjusted): (Vec<Adjustment<'a>>, Vec<AdjustedCharge<'a>>),
    ) -> StoreReply<'a, Result<Answers, StoreError>, S::Undecided> {
        let mut answers = Answers::default();
        if adjustments.is_empty() {
            return StoreReply::Now(Ok(answers));
        }
        let begun = self.begin_adjust(now_us, (&adjustments, &adjusted), false, &mut answers);
        let Some(rest) = begun else {
            return StoreReply::Now(Ok(answers));
        };
        StoreReply::later(rest, async move {
            let all = (&*adjustments, &*adjusted);
            self.finish_adjust(now_us, all, rest, &mut answers).await.map(|()| answers)
        })
    }

    /// Phase one of [`adjust`](Self::adjust), in the store that [holds](Self::begin_call) the
    /// charges.
    pub(crate) fn begin_adjust(
        &self,
        now_us: u64,
        (adjustments, adjusted): (&[Adjustment<'_>], &[AdjustedCharge<'_>]),
        is_local: bool,
        answers: &mut Answers,
    ) -> Option<S::Undecided> {
        let rest = self.begin_call(now_us, StoreCall::Adjust(adjustments), is_local, answers);
        if rest.is_none() {
            self.forget_refusals(adjustments);
            self.observe_adjustments(now_us, adjustments, adjusted);
        }
        rest
    }

    /// Phase two of [`adjust`](Self::adjust).
    pub(crate) async fn finish_adjust(
        &self,
        now_us: u64,
        (adjustments, adjusted): (&[Adjustment<'_>], &[AdjustedCharge<'_>]),
        rest: S::Undecided,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let call = StoreCall::Adjust(adjustments);
        let finished = self.store.finish(now_us, call, rest, answers).await;
        self.forget_refusals(adjustments);
        match &finished {
            Ok(()) => self.observe_adjustments(now_us, adjustments, adjusted),
            Err(error) => self.errors.count(error.kind),
        }
        finished
    }
}
