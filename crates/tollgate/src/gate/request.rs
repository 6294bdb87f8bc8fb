//! The limits that a decision is about, and the rows that answer them.

use crate::engine::{Row, Rules, Source};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::{Intent, Outcome};
use tollgate_policy::policy::Selected;
use tollgate_store::{Answer, Charge, Request};

/// Limits to decide, each with its charge.
#[derive(Debug)]
pub(crate) struct DecisionRequest<'a, 'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) now_us: u64,
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

/// The form of one limit's answer: a [`Row`], or less where the caller needs less.
pub(crate) trait FromAnswer<'r>: From<Row<'r>> {
    fn from_answer(rules: &'r Rules, selected: &Selected<'_>, answer: &Answer) -> Self;

    /// For the counters: the source, whether the limit admits, and whether it refuses the request.
    fn counted(&self) -> (Source, bool, bool);

    /// The figures of the limit.
    fn outcome(&self) -> &Outcome;
}

impl<'a, 'r: 'a> DecisionRequest<'a, 'r> {
    #[inline]
    pub(crate) fn new(rules: &'r Rules, now_us: u64, buffers: &mut DecisionBuffers) -> Self {
        let DecisionBuffers { limits, charges, requests } = std::mem::take(buffers);
        let (uses_deny_cache, is_one_request) = (true, true);
        Self {
            rules,
            now_us,
            uses_deny_cache,
            is_one_request,
            limits,
            charges,
            candidates: 0,
            spare_requests: requests,
        }
    }

    /// Fills an empty request with limits of the policy, each with its usual charge.
    #[inline]
    pub(crate) fn push_selected(
        &mut self,
        selected: impl ExactSizeIterator<Item = Selected<'a>>,
        intent: Intent,
    ) {
        let (rules, counts, batch_index) = (self.rules, intent == Intent::Take, 0);
        let limit = |selected| RequestedLimit { selected, intent, counts, batch_index };
        debug_assert!(self.limits.is_empty(), "the charges below are those of all limits");
        self.limits.extend(selected.map(limit));
        self.charges.extend(self.limits.iter().map(|one| rules.charge(&one.selected)));
    }

    pub(crate) fn push(&mut self, selected: Selected<'a>, charge: Charge<'a>, intent: Intent) {
        let counts = intent == Intent::Take;
        self.limits.push(RequestedLimit { selected, intent, counts, batch_index: 0 });
        self.charges.push(charge);
    }
}

impl<'a> DecisionRequest<'a, '_> {
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

/// An empty vector for elements of another lifetime. The standard library reuses the allocation
/// today; if it stops, this costs an allocation and nothing else.
#[inline(always)]
pub(crate) fn recycle_vec<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("it was emptied")).collect()
}
