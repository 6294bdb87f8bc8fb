//! The verdict on a request: allowed or not, one row per limit, and the source.

mod shed;
mod source;

pub use shed::ShedVerdict;
pub use source::Source;

use crate::engine::Rules;
use crate::gate::FromAnswer;
use tollgate_core::header::tightness;
use tollgate_core::{Algorithm, LimitParams, Outcome};
use tollgate_policy::limit::{Limit, Mode};
use tollgate_policy::policy::Selected;
use tollgate_store::Answer;

/// The answer to one request. A refusal is an answer, not an error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verdict<'g> {
    /// Whether the request may pass.
    pub allowed: bool,
    /// The delay of an admitted request.
    pub delay_us: u64,
    /// The wait of a refused request; zero if admitted, `None` if no wait helps.
    pub retry_after_us: Option<u64>,
    /// The source of the decision.
    pub source: Source,
    /// The limits that applied, in file order.
    pub rows: Vec<Row<'g>>,
    /// The verdict of shedders; `None` if none is on.
    pub shed: Option<ShedVerdict>,
}

/// The answer of one limit, regardless of the others.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row<'g> {
    /// The limit.
    pub limit: &'g Limit,
    /// The numbers: admitted, remaining, waits.
    pub outcome: Outcome,
    /// The window to show with the capacity.
    pub window_us: Option<u64>,
    /// The burst, if it differs from the count of the rate.
    pub burst: Option<u64>,
    /// The source of this row.
    pub source: Source,
    /// A hash of limit and key, equal on every node. Zero unless enabled in the
    /// [setup](crate::engine::GateSetup::with_buckets).
    pub bucket: u64,
    /// Whether the limit refuses because the request's token did not verify.
    pub unverified: bool,
    /// Whether a penalty's or an operator's block refused the request.
    pub blocked: bool,
}

impl<'g> Row<'g> {
    #[inline]
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

    /// The row of a limit that this process decided, such as that of a
    /// [limiter](crate::Limiter::answer).
    pub fn of_answer(limit: &'g Limit, params: &LimitParams, answer: &Answer) -> Self {
        Self::new(
            limit,
            params,
            answer.outcome,
            Source::of(limit, answer, Source::Memory, || limit.on_store_failure),
            0,
        )
    }

    /// The tightest row: refused for the longest time, else with the least remaining. The first of
    /// equal rows.
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

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl<'g> Verdict<'g> {
    pub(crate) fn new(allowed: bool, rows: Vec<Row<'g>>) -> Self {
        if allowed {
            let delayed = rows.iter().filter(|row| row.outcome.delay_us > 0 && row.enforced());
            let delay_us = delayed.map(|row| row.outcome.delay_us).max().unwrap_or(0);
            let source = Source::of_admitted(rows.iter().map(|row| row.source));
            return Self { allowed, delay_us, retry_after_us: Some(0), source, rows, shed: None };
        }
        let refusing = || rows.iter().filter(|row| row.refuses());
        let waits = refusing().map(|row| row.outcome.retry_after_us);
        let retry_after_us = waits.reduce(|a, b| Some(a?.max(b?))).flatten();
        let source = Source::of_refused(refusing().map(|row| row.source));
        Self { allowed, delay_us: 0, retry_after_us, source, rows, shed: None }
    }

    /// The verdict of one limit: see [`Row::of_answer`].
    pub fn of_row(row: Row<'g>) -> Self {
        Self::new(!row.refuses(), vec![row])
    }

    /// This verdict as a refusal by its refusing rows. Envoy's rate limit service needs it: its
    /// quotas refuse only together, so the gate admits a request that all of them refuse.
    pub fn refused(&self) -> Self {
        Self { shed: self.shed, ..Self::new(false, self.rows.clone()) }
    }

    /// The [tightest](Row::tightest) of the enforced limits.
    pub fn tightest(&self) -> Option<&Row<'g>> {
        Row::tightest(self.rows.iter().filter(|row| row.enforced()))
    }
}
