//! The answers of a store.

use crate::StoreErrorKind;
use tollgate_core::{Outcome, Receipt};

/// The answer to one charge, by its limit alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The limit's outcome. In a block: refused, nothing remaining, and the block's end as wait and
    /// reset.
    pub outcome: Outcome,
    /// Whether a block refused the charge.
    pub blocked: bool,
    /// The receipt of the charge, if the charge can be given back.
    pub receipt: Option<Receipt>,
    /// The source of the decision.
    pub origin: Origin,
}

/// The source of a decision on a charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The limit's state in the store.
    #[default]
    State,
    /// A lease: units taken in advance.
    Lease,
    /// A recent refusal of the store: nothing was left.
    CachedRefusal,
    /// The grace period: the units that nodes hold of the limit are unknown.
    GracePeriod,
    /// Nothing: the limit's server failed. The outcome is a placeholder that admits.
    Failed(StoreErrorKind),
}

impl Answer {
    /// A row that is overwritten before it is read.
    pub(crate) const PLACEHOLDER: Self = Self::without_receipt(Outcome::admitting(0));

    /// The answer of a limit that is not charged.
    #[inline(always)]
    pub const fn without_receipt(outcome: Outcome) -> Self {
        Self { outcome, blocked: false, receipt: None, origin: Origin::State }
    }

    /// The answer of a limit that is charged.
    #[inline(always)]
    pub(crate) const fn with_receipt(outcome: Outcome, receipt: Receipt) -> Self {
        Self { outcome, blocked: false, receipt: Some(receipt), origin: Origin::State }
    }

    /// The answer of a limit whose server failed. Whether anything was charged is unknown.
    pub const fn failed(kind: StoreErrorKind) -> Self {
        let origin = Origin::Failed(kind);
        Self { origin, ..Self::without_receipt(Outcome::admitting(0)) }
    }

    /// The kind of failure, if the limit's server failed.
    pub const fn failure(&self) -> Option<StoreErrorKind> {
        match self.origin {
            Origin::Failed(kind) => Some(kind),
            _ => None,
        }
    }

    /// Merges the answer to a debt: `self` from before the charge, `after` from a peek afterwards.
    pub(crate) fn after_debt(self, mut after: Self) -> Self {
        if self.outcome.admitted {
            after.outcome.admitted = true;
            after.outcome.retry_after_us = Some(0);
            after.outcome.delay_us = self.outcome.delay_us;
        }
        after
    }

    /// Shows a block that ends in `left_us`.
    pub(crate) const fn show_block(&mut self, left_us: u64) {
        self.blocked = true;
        self.outcome = self.outcome.in_block(left_us);
    }
}

/// The answers to a batch, in request order. Reused, it allocates only while it grows.
#[derive(Debug, Default)]
pub struct Answers {
    /// Rows of this batch up to `used`, then rows of earlier batches, to be overwritten in place.
    rows: Vec<Answer>,
    used: usize,
    /// For each request, the end of its rows, and whether it was admitted.
    requests: Vec<(usize, bool)>,
}

impl Answers {
    /// Clears the last batch.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.requests.clear();
    }

    /// Adds a row to the current request.
    #[inline]
    pub fn push(&mut self, answer: Answer) {
        match self.rows.get_mut(self.used) {
            Some(row) => *row = answer,
            None => self.grow(answer),
        }
        self.used += 1;
    }

    #[cold]
    fn grow(&mut self, answer: Answer) {
        self.rows.push(answer);
    }

    /// The rows of the current request.
    pub fn current_rows(&mut self) -> &mut [Answer] {
        let start = self.requests.last().map_or(0, |request| request.0);
        &mut self.rows[start..self.used]
    }

    /// Drops the rows of the current request, so that it can be answered again.
    pub fn discard_current_rows(&mut self) {
        let start = self.requests.last().map_or(0, |request| request.0);
        self.used = start;
    }

    /// Adds `rows` rows to the current request, to be overwritten.
    pub(crate) fn add_rows(&mut self, rows: usize) -> &mut [Answer] {
        let start = self.used;
        self.used += rows;
        if self.rows.len() < self.used {
            self.rows.resize(self.used, Answer::PLACEHOLDER);
        }
        &mut self.rows[start..self.used]
    }

    /// Ends the current request.
    #[inline]
    pub fn finish(&mut self, admitted: bool) {
        self.requests.push((self.used, admitted));
    }

    /// Whether the request at `index` was admitted, and a row for each of its charges.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(bool, &[Answer])> {
        let &(end, admitted) = self.requests.get(index)?;
        let start =
            index.checked_sub(1).and_then(|before| self.requests.get(before)).map_or(0, |r| r.0);
        Some((admitted, self.rows.get(start..end)?))
    }

    /// The request at `index`, to change its verdict and its rows.
    pub fn get_mut(&mut self, index: usize) -> Option<(&mut bool, &mut [Answer])> {
        let start =
            index.checked_sub(1).map_or(Some(0), |before| Some(self.requests.get(before)?.0));
        let (end, admitted) = self.requests.get_mut(index)?;
        Some((admitted, self.rows.get_mut(start?..*end)?))
    }

    /// The first failure of a limit's server.
    pub fn first_failure(&self) -> Option<StoreErrorKind> {
        self.rows[..self.used].iter().find_map(Answer::failure)
    }

    /// The number of answered requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether no request was answered.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}
