//! The limits that a decision is about, and the rows that answer them.

use crate::engine::{AdmissionOptions, Row, Rules, Source, Verdict};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::{Intent, Outcome};
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{Answer, Answers, Charge, Request, StoreErrorKind};

/// Limits to decide, each with its charge.
#[derive(Debug)]
pub(crate) struct DecisionRequest<'a, 'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) now_us: u64,
    /// The class of the request, if a shedder is on.
    pub(crate) class: Option<usize>,
    /// Whether the deny cache may answer. It knows only refusals, so it cannot show every row.
    pub(crate) uses_deny_cache: bool,
    /// Whether all charges are one request; otherwise each limit is a request of its own, with its
    /// candidate.
    pub(crate) is_one_request: bool,
    pub(crate) limits: Vec<RequestedLimit<'a>>,
    pub(crate) charges: Vec<Charge<'a>>,
    /// How many of the limits are candidates: the last ones of each request, which have no rows.
    pub(super) candidates: usize,
    /// Spare allocation for batches; always empty.
    pub(super) spare_requests: Vec<Request<'static>>,
}

/// The allocations of the last [`DecisionRequest`], for the next one.
#[derive(Debug, Default)]
pub(crate) struct DecisionBuffers {
    limits: Vec<RequestedLimit<'static>>,
    charges: Vec<Charge<'static>>,
    requests: Vec<Request<'static>>,
}

/// One limit of a [`DecisionRequest`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedLimit<'a> {
    pub(crate) selected: Selected<'a>,
    pub(crate) intent: Intent,
    /// Whether the limit's counters count its answer.
    pub(crate) counts: bool,
    /// The index of its request in a batch.
    pub(crate) batch_index: usize,
}

/// The answer to a [`DecisionRequest`].
#[derive(Debug)]
pub(crate) struct DecidedRows<R> {
    /// Whether the request may pass. Meaningless for a batch.
    pub(crate) allowed: bool,
    pub(crate) rows: Vec<R>,
    /// The index of each row's limit. Empty if every limit has a row, in order.
    pub(super) limit_indices: SmallVec<[usize; 4]>,
}

/// Whether the caller sees the end of a request, and so gives its slots back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Seen,
    /// A slot of the fleet is held for the time that the policy assumes.
    Unseen,
}

/// The form of one limit's answer: a [`Row`], or less where the caller needs less.
pub(crate) trait FromAnswer<'r>: From<Row<'r>> {
    fn from_answer(rules: &'r Rules, selected: &Selected<'_>, answer: &Answer) -> Self;

    /// For the counters: the source, whether the limit admits, and whether it refuses the request.
    fn counted(&self) -> (Source, bool, bool);

    /// The figures of the limit.
    fn outcome(&self) -> &Outcome;
}

impl<'a> RequestedLimit<'a> {
    /// A limit outside a batch. A peek is not counted.
    #[inline]
    pub(crate) fn new(selected: Selected<'a>, intent: Intent) -> Self {
        Self { selected, intent, counts: intent == Intent::Take, batch_index: 0 }
    }
}

impl<'a, 'r: 'a> DecisionRequest<'a, 'r> {
    #[inline]
    pub(crate) fn new(rules: &'r Rules, now_us: u64, buffers: &mut DecisionBuffers) -> Self {
        let DecisionBuffers { limits, charges, requests } = std::mem::take(buffers);
        let (uses_deny_cache, is_one_request) = (true, true);
        Self {
            rules,
            now_us,
            class: None,
            uses_deny_cache,
            is_one_request,
            limits,
            charges,
            candidates: 0,
            spare_requests: requests,
        }
    }

    /// The limits that apply to a request with these facts, and the charges that no answer lists.
    #[inline(always)]
    pub(crate) fn select(
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        options: &AdmissionOptions<'_>,
        intent: Intent,
        selection: &'a mut Selection,
        buffers: &mut DecisionBuffers,
    ) -> Self {
        rules.policy().select(facts, options.cost, selection);
        if let Some(only) = options.only {
            selection.retain(|limit| only.contains(&limit));
        }
        // A check without units takes nothing, so no slot either.
        let takes_slot = options.is_end_seen || options.cost > 0;
        let class = rules.select_hidden(facts, takes_slot, selection);
        let mut request = Self::new(rules, now_us, buffers);
        request.push_selected(rules.policy().selected(selection), intent);
        request.prepare_hidden(class, options.end());
        request
    }

    /// Fills an empty request with limits of the policy, each with its usual charge.
    #[inline]
    pub(crate) fn push_selected(
        &mut self,
        selected: impl ExactSizeIterator<Item = Selected<'a>>,
        intent: Intent,
    ) {
        let (rules, limit) = (self.rules, |selected| RequestedLimit::new(selected, intent));
        debug_assert!(self.limits.is_empty(), "the charges below are those of all limits");
        self.limits.extend(selected.map(limit));
        self.charges.extend(self.limits.iter().map(|one| rules.charge(&one.selected)));
    }

    #[inline]
    pub(crate) fn push(&mut self, limit: RequestedLimit<'a>, charge: Charge<'a>) {
        self.limits.push(limit);
        self.charges.push(charge);
    }

    /// Prepares the charges that [`Rules::select_hidden`] selected.
    #[inline]
    pub(crate) fn prepare_hidden(&mut self, class: Option<usize>, end: RequestEnd) {
        self.class = class;
        if self.rules.policy().has_candidates() {
            self.prepare_candidates(0);
        }
        if class.is_some() && self.rules.policy().has_fleet() {
            self.prepare_fleet(end);
        }
    }

    /// Prepares the slots of the fleet, which no counter of limits counts.
    pub(crate) fn prepare_fleet(&mut self, end: RequestEnd) {
        let rules: &'r Rules = self.rules;
        let Some(shed) = rules.shed() else { return };
        let limits = self.limits.iter_mut().zip(&mut self.charges).rev().skip(self.candidates);
        for (limit, charge) in limits {
            if !limit.selected.limit.selector.is_shed() {
                break;
            }
            limit.counts = false;
            charge.cost = 1;
            if let (RequestEnd::Unseen, Some(assumed)) = (end, shed.assumed(limit.selected.index)) {
                (charge.params, charge.params_id) = assumed;
            }
        }
    }
}

impl Rules {
    /// Selects charges that no answer lists, after the limits: the slots of the fleet, then
    /// candidates. Returns the class of the request, if a shedder is on.
    #[inline]
    pub(crate) fn select_hidden(
        &self,
        facts: &Facts<'_>,
        takes_slot: bool,
        selection: &mut Selection,
    ) -> Option<usize> {
        let class = self.policy().class(facts);
        if let Some(class) = class.filter(|_| takes_slot) {
            self.policy().select_fleet(class, selection);
        }
        if self.policy().has_candidates() {
            self.policy().select_candidates(selection, |_| true);
        }
        class
    }
}

impl<'a> DecisionRequest<'a, '_> {
    /// The limits of a request that have rows.
    #[inline]
    pub(super) fn shown(&self, limits: Range<usize>) -> Range<usize> {
        // In a batch, each request has one limit.
        let rows = if self.is_one_request { limits.len() - self.candidates } else { 1 };
        limits.start..limits.start + rows
    }

    /// Whether a request has candidates.
    #[inline]
    pub(super) fn has_candidates(&self, limits: &Range<usize>) -> bool {
        self.candidates > 0 && self.shown(limits.clone()).end < limits.end
    }

    /// The limits of each request. In a batch, that is a limit and perhaps its candidate.
    #[inline]
    pub(super) fn requests(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = self.limits.get(start)?;
            let is_next = |limit: &RequestedLimit<'_>| limit.batch_index != first.batch_index;
            let length = match self.is_one_request {
                true => None,
                false => self.limits[start..].iter().position(is_next),
            };
            let range = start..length.map_or(self.limits.len(), |length| start + length);
            start = range.end;
            Some(range)
        })
    }

    /// The limits of each request that the deny cache did not answer.
    #[inline]
    pub(super) fn unanswered(&self, answered: &[bool]) -> impl Iterator<Item = Range<usize>> {
        let is_unknown = |n: usize| answered.get(n) != Some(&true);
        self.requests().enumerate().filter_map(move |(n, limits)| is_unknown(n).then_some(limits))
    }

    /// Fills the answers of a call that failed.
    #[cold]
    pub(super) fn fail_rows(&self, answered: &[bool], kind: StoreErrorKind, answers: &mut Answers) {
        answers.clear();
        for limits in self.unanswered(answered) {
            limits.for_each(|_| answers.push(Answer::failed(kind)));
            answers.finish(true);
        }
    }

    /// Fails the rows of charges that the store had to refuse.
    #[cold]
    pub(super) fn fail_withheld(
        &self,
        answered: &[bool],
        withheld: &[usize],
        answers: &mut Answers,
    ) {
        for (index, limits) in self.unanswered(answered).enumerate() {
            let Some((_, rows)) = answers.get_mut(index) else { continue };
            let first = withheld.partition_point(|charge| *charge < limits.start);
            for charge in withheld[first..].iter().take_while(|charge| limits.contains(charge)) {
                if let Some(row) = rows.get_mut(charge - limits.start) {
                    *row = Answer::failed(StoreErrorKind::Unreachable);
                }
            }
        }
    }

    /// The store's requests.
    #[inline]
    pub(super) fn store_requests<'q>(
        &'q self,
        answered: &[bool],
        buffers: Vec<Request<'static>>,
    ) -> SmallVec<[Request<'q>; 1]> {
        let request = |limits: Range<usize>| Request {
            intent: self.limits[limits.start].intent,
            charges: &self.charges[limits],
        };
        if self.is_one_request && !self.limits.is_empty() && answered.is_empty() {
            return SmallVec::from_buf([request(0..self.limits.len())]);
        }
        let mut requests = SmallVec::from_vec(buffers);
        requests.extend(self.unanswered(answered).map(request));
        requests
    }
}

impl DecisionBuffers {
    #[inline(always)]
    pub(super) fn recycle(&mut self, request: DecisionRequest<'_, '_>) {
        let DecisionRequest { limits, charges, spare_requests: requests, .. } = request;
        *self = Self { limits: recycle_vec(limits), charges: recycle_vec(charges), requests };
    }
}

impl<R> DecidedRows<R> {
    /// Whether row n belongs to limit n.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.limit_indices.iter().enumerate().all(|(place, limit)| place == *limit)
    }

    /// The limit of the row at this index.
    pub(crate) fn limit_of_row(&self, row: usize) -> usize {
        self.limit_indices.get(row).copied().unwrap_or(row)
    }

    /// The row of the limit, unless the deny cache left it out.
    pub(crate) fn row_of_limit(&self, limit: usize) -> Option<usize> {
        if self.limit_indices.is_empty() {
            return (limit < self.rows.len()).then_some(limit);
        }
        self.limit_indices.iter().position(|one| *one == limit)
    }
}

impl<'r> DecidedRows<Row<'r>> {
    /// The verdict on the request.
    #[inline]
    pub(crate) fn into_verdict(self, request: &DecisionRequest<'_, 'r>) -> Verdict<'r> {
        match (request.class, request.rules.shed()) {
            (Some(class), Some(shed)) => {
                Verdict::of_class(class, self.rows, self.allowed, || shed.retry_after_us())
            }
            _ => Verdict::new(self.allowed, self.rows),
        }
    }
}

/// An empty vector for elements of another lifetime. The standard library reuses the allocation
/// today; if it stops, this costs an allocation and nothing else.
#[inline(always)]
pub(crate) fn recycle_vec<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("it was emptied")).collect()
}
