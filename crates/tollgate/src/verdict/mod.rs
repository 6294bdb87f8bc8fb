//! The verdict on a request: allowed or not, one row per limit, and the source.

mod source;

pub use source::Source;

use crate::Rules;
use crate::gate::{DecidedRows, FromAnswer};
use tollgate_core::header::tightness;
use tollgate_core::{Algorithm, LimitParams, Outcome};
use tollgate_policy::limit::{Limit, Mode};
use tollgate_policy::policy::Selected;
use tollgate_store::Answer;

/// The answer for one request. A refusal is an answer, never an error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verdict<'g> {
    /// Whether the request may pass.
    pub allowed: bool,
    /// How long to hold an admitted request back.
    pub delay_us: u64,
    /// Zero when admitted; `None` when no wait can help.
    pub retry_after_us: Option<u64>,
    /// Where the decision came from.
    pub source: Source,
    /// The limits that applied, in file order.
    pub rows: Vec<Row<'g>>,
}

/// One limit's own answer, whatever the others said.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row<'g> {
    /// The limit.
    pub limit: &'g Limit,
    /// Its numbers: admitted, remaining, waits.
    pub outcome: Outcome,
    /// The window to show beside the capacity.
    pub window_us: Option<u64>,
    /// The burst, where it is another number than the rate's own.
    pub burst: Option<u64>,
    /// Where this row came from.
    pub source: Source,
    /// A hash of limit and key that is the same on every node; zero unless the gate was asked for
    /// it.
    pub bucket: u64,
    /// Whether the limit refuses because the request's token did not verify.
    pub unverified: bool,
    /// Whether a block refused it, a penalty's or an operator's, whatever the source.
    pub blocked: bool,
}

impl<'g> Row<'g> {
    pub(crate) fn new(
        limit: &'g Limit,
        params: &LimitParams,
        outcome: Outcome,
        source: Source,
        bucket: u64,
    ) -> Self {
        let blocked = source == Source::Blocked;
        let (window_us, burst) = (params.window_us(), params.burst());
        Self { limit, outcome, window_us, burst, source, bucket, unverified: false, blocked }
    }

    /// The tightest of some rows: refused for longest, else with the least remaining; the first of
    /// equals.
    pub fn tightest<'r>(rows: impl IntoIterator<Item = &'r Self>) -> Option<&'r Self>
    where
        'g: 'r,
    {
        let key = |row: &&Self| {
            tightness(row.refuses(), row.outcome.retry_after_us, row.outcome.remaining)
        };
        rows.into_iter().min_by_key(key)
    }

    /// Whether a refusal by this limit refuses the request.
    pub fn enforced(&self) -> bool {
        self.limit.mode == Mode::Enforce
    }

    /// Whether this limit refused the request.
    pub fn refuses(&self) -> bool {
        self.enforced() && !self.outcome.admitted
    }
}

impl<'g> FromAnswer<'g> for Row<'g> {
    #[inline]
    fn from_answer(rules: &'g Rules, selected: &Selected<'_>, answer: &Answer) -> Self {
        rules.row_from(selected, answer, rules.source(selected, answer))
    }

    #[inline]
    fn counted(&self) -> (Source, bool, bool) {
        (self.source, self.outcome.admitted, self.refuses())
    }
}

impl<'g> Verdict<'g> {
    /// Sums the rows up.
    pub(crate) fn new(allowed: bool, rows: Vec<Row<'g>>) -> Self {
        let refusing = || rows.iter().filter(|row| row.refuses());
        let retry_after_us = match allowed {
            true => Some(0),
            false => refusing()
                .map(|row| row.outcome.retry_after_us)
                .reduce(|a, b| Some(a?.max(b?)))
                .unwrap_or(None),
        };
        let source = match allowed {
            true => Source::of_admitted(rows.iter().map(|row| row.source)),
            false => refusing().map(|row| row.source).next().unwrap_or(Source::None),
        };
        let delay_us = match allowed {
            true => rows.iter().filter(|row| row.enforced()).map(|row| row.outcome.delay_us).max(),
            false => None,
        };
        let delay_us = delay_us.unwrap_or(0);
        Self { allowed, delay_us, retry_after_us, source, rows }
    }

    /// The [tightest](Row::tightest) of the enforced limits: the one whose figures stand for all.
    pub fn tightest(&self) -> Option<&Row<'g>> {
        Row::tightest(self.rows.iter().filter(|row| row.enforced()))
    }
}

impl<'g> From<DecidedRows<Row<'g>>> for Verdict<'g> {
    fn from(told: DecidedRows<Row<'g>>) -> Self {
        Self::new(told.allowed, told.rows)
    }
}
