//! The limits that one decision asks about, and the rows that answer it.

use crate::{Row, Rules, Source};
use smallvec::SmallVec;
use std::ops::Range;
use tollgate_core::Intent;
use tollgate_policy::policy::Selected;
use tollgate_store::{Answer, Charge, Request};

/// Limits to be asked, each with its charge.
#[derive(Debug)]
pub(crate) struct DecisionRequest<'a, 'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) now_us: u64,
    /// Whether the deny cache may answer. It knows only refusals, so it cannot show all figures.
    pub(crate) uses_deny_cache: bool,
    /// One request with all charges. Otherwise every charge is a request of its own.
    pub(crate) is_one_request: bool,
    pub(crate) limits: Vec<RequestedLimit<'a>>,
    pub(crate) charges: Vec<Charge<'a>>,
    /// Always empty; it is here for its memory.
    pub(super) requests: Vec<Request<'static>>,
}

/// What the last question was written in, for the next one.
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
    /// The place of its request in a batch.
    pub(crate) batch_index: usize,
}

/// The answer to a [`DecisionRequest`].
#[derive(Debug)]
pub(crate) struct DecidedRows<R> {
    /// Whether the request may pass, of one request.
    pub(crate) allowed: bool,
    pub(crate) rows: Vec<R>,
    /// Which limit each row is of. Empty: all limits have a row, in their order.
    pub(super) limit_indices: SmallVec<[usize; 4]>,
}

/// What is made of one limit's answer: a [`Row`], or less where nobody shows all of it.
pub(crate) trait FromAnswer<'r>: From<Row<'r>> {
    fn from_answer(rules: &'r Rules, selected: &Selected<'_>, answer: &Answer) -> Self;

    /// What the counters count: the source, whether the limit admits, and whether it refuses the
    /// request.
    fn counted(&self) -> (Source, bool, bool);
}

impl<'a, 'r: 'a> DecisionRequest<'a, 'r> {
    #[inline]
    pub(crate) fn new(rules: &'r Rules, now_us: u64, memory: &mut DecisionBuffers) -> Self {
        let DecisionBuffers { limits: asked, charges, requests } = std::mem::take(memory);
        Self {
            rules,
            now_us,
            uses_deny_cache: true,
            is_one_request: true,
            limits: asked,
            charges,
            requests,
        }
    }

    /// Asks about limits of the policy, each with its usual charge.
    #[inline]
    pub(crate) fn push_selected(
        &mut self,
        selected: impl ExactSizeIterator<Item = Selected<'a>>,
        intent: Intent,
    ) {
        let (rules, counts) = (self.rules, intent == Intent::Take);
        self.limits.extend(selected.map(|selected| RequestedLimit {
            selected,
            intent,
            counts,
            batch_index: 0,
        }));
        self.charges.extend(self.limits.iter().map(|one| rules.charge(&one.selected)));
    }

    pub(crate) fn push(&mut self, selected: Selected<'a>, charge: Charge<'a>, intent: Intent) {
        let counts = intent == Intent::Take;
        self.limits.push(RequestedLimit { selected, intent, counts, batch_index: 0 });
        self.charges.push(charge);
    }
}

impl<'a> DecisionRequest<'a, '_> {
    /// How many requests there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        if self.is_one_request { usize::from(!self.limits.is_empty()) } else { self.limits.len() }
    }

    /// The limits of one request.
    #[inline]
    pub(super) fn limit_range(&self, request: usize) -> Range<usize> {
        if self.is_one_request { 0..self.limits.len() } else { request..request + 1 }
    }

    /// The limits of each request that the deny cache did not answer.
    #[inline]
    pub(super) fn unanswered(&self, known: &[bool]) -> impl Iterator<Item = Range<usize>> {
        let is_unknown = |n: &usize| known.get(*n) != Some(&true);
        (0..self.len()).filter(is_unknown).map(|n| self.limit_range(n))
    }

    /// What the store is asked.
    #[inline]
    pub(super) fn requests<'q>(
        &'q self,
        known: &[bool],
        memory: Vec<Request<'static>>,
    ) -> SmallVec<[Request<'q>; 1]> {
        let request = |limits: Range<usize>| Request {
            intent: self.limits[limits.start].intent,
            charges: &self.charges[limits],
        };
        if self.len() == 1 && known.is_empty() {
            return SmallVec::from_buf([request(self.limit_range(0))]);
        }
        let mut requests = SmallVec::from_vec(memory);
        requests.extend(self.unanswered(known).map(request));
        requests
    }
}

impl DecisionBuffers {
    #[inline]
    pub(super) fn recycle(&mut self, question: DecisionRequest<'_, '_>) {
        let DecisionRequest { limits: asked, charges, requests, .. } = question;
        *self = Self { limits: recycle_vec(asked), charges: recycle_vec(charges), requests };
    }
}

impl<R> DecidedRows<R> {
    /// Whether the rows are those of the first limits, in their order.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.limit_indices.iter().enumerate().all(|(place, limit)| place == *limit)
    }

    /// The limit that the row at `place` is of.
    pub(crate) fn limit_of_row(&self, place: usize) -> usize {
        self.limit_indices.get(place).copied().unwrap_or(place)
    }

    /// The row of the limit, unless the deny cache left it out.
    pub(crate) fn row_of_limit(&self, limit: usize) -> Option<usize> {
        match self.limit_indices.is_empty() {
            true => (limit < self.rows.len()).then_some(limit),
            false => self.limit_indices.iter().position(|one| *one == limit),
        }
    }
}

/// The same memory for elements that live for another time. Collecting an empty vector into one of
/// the same layout keeps it.
pub(crate) fn recycle_vec<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("it was emptied")).collect()
}
