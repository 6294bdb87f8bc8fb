//! What a store answers.

use tollgate_core::{Outcome, Receipt};

/// One charge's answer: the limit's own, whatever the others said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The limit's own outcome. In a block: refused, nothing remaining, and the block's end as wait
    /// and reset.
    pub outcome: Outcome,
    /// Whether a penalty's block refused it.
    pub blocked: bool,
    /// What was taken, if anything was that can be given back.
    pub receipt: Option<Receipt>,
    /// What it was decided by.
    pub origin: Origin,
}

/// What decided a charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The limit's state.
    #[default]
    State,
    /// Units taken from it in advance.
    Lease,
    /// What the state said a moment ago: that nothing is left.
    CachedRefusal,
    /// Nothing: what nodes hold of the limit is not known at the moment.
    GracePeriod,
}

impl Answer {
    /// What a limit that took nothing answers.
    pub const fn without_receipt(outcome: Outcome) -> Self {
        Self { outcome, blocked: false, receipt: None, origin: Origin::State }
    }

    /// What is answered for a charge that said this before its units were taken, where a peek says
    /// `after` afterwards.
    pub(crate) fn after_debt(self, mut after: Self) -> Self {
        if self.outcome.admitted {
            after.outcome.admitted = true;
            after.outcome.retry_after_us = Some(0);
            after.outcome.delay_us = self.outcome.delay_us;
        }
        after
    }

    /// Shows the block that the key is in for another `left_us`.
    pub(crate) const fn show_block(&mut self, left_us: u64) {
        self.blocked = true;
        self.outcome = self.outcome.in_block(left_us);
    }
}

/// The answers for a batch, in the order asked. Reused between calls, it allocates only while it
/// grows.
#[derive(Debug, Default)]
pub struct Answers {
    /// Rows of this batch up to `used`, then those of earlier ones: a row is written where one was,
    /// and not moved there.
    rows: Vec<Answer>,
    used: usize,
    /// For each request: the end of its rows, and whether it was admitted.
    requests: Vec<(usize, bool)>,
}

impl Answers {
    /// Forgets the last batch.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.requests.clear();
    }

    /// Adds a row to the request being answered.
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

    /// The rows of the request being answered, to be completed once all its limits have spoken.
    pub fn current_rows(&mut self) -> &mut [Answer] {
        let start = self.requests.last().map_or(0, |request| request.0);
        &mut self.rows[start..self.used]
    }

    /// Drops the rows of the request being answered, so that it can be answered again.
    pub fn discard_current_rows(&mut self) {
        let start = self.requests.last().map_or(0, |request| request.0);
        self.used = start;
    }

    /// Ends the request being answered.
    #[inline]
    pub fn finish(&mut self, admitted: bool) {
        self.requests.push((self.used, admitted));
    }

    /// Whether the request at `index` was admitted, and the row of each of its charges.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(bool, &[Answer])> {
        let &(end, admitted) = self.requests.get(index)?;
        let start =
            index.checked_sub(1).and_then(|before| self.requests.get(before)).map_or(0, |r| r.0);
        Some((admitted, self.rows.get(start..end)?))
    }

    /// How many requests were answered.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}
