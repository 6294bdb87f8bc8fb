//! What was decided, as Envoy reads it: the messages of [`wire`](super::wire), written from what they are about.

use super::asking::Asking;
use super::metadata;
use super::pen::Pen;
use super::wire::{OK, OVER_LIMIT};
use crate::front::http::encode::fields;
use crate::metrics::Outcome;
use smallvec::SmallVec;
use tollgate::{Row, Source, Verdict};
use tollgate_core::header::{Fields, Problem, Profile, retry_after_seconds};
use tollgate_policy::envoy::{Rule, Unit};
use tollgate_policy::settings::Envoy;
use tollgate_tower::problem_of;

/// The answer for one request.
pub(super) struct Decided<'a, 'b> {
    pub(super) verdict: &'a Verdict<'a>,
    /// For each descriptor.
    pub(super) shown: &'b [Shown<'a>],
    pub(super) now_us: u64,
    /// The file's settings for answers to Envoy.
    pub(super) envoy: &'b Envoy,
}

/// The answer for one descriptor.
pub(super) struct Shown<'a> {
    pub(super) rows: SmallVec<[&'a Row<'a>; 4]>,
    pub(super) rule: Option<&'a Rule>,
    /// Whether its limit came with it, and so has no name.
    pub(super) own: bool,
}

impl Shown<'_> {
    /// Whether one of its limits says no; a shadow limit does not say it here.
    pub(super) fn is_over(&self) -> bool {
        self.rows.iter().any(|row| row.refuses())
    }

    fn is_quota(&self) -> bool {
        self.rule.is_some_and(|rule| rule.quota && rule.limit.is_some())
    }
}

/// Adds all of it to `out`, and says whether the request may pass. The code is never UNKNOWN, with which Envoy would let the request pass.
pub(super) fn response(
    asking: &Asking<'_>,
    decided: &Decided<'_, '_>,
    profiles: &[Profile],
    fields: &mut Fields,
    out: &mut Vec<u8>,
) -> bool {
    let allowed = is_allowed(decided);
    let verdict = match allowed == decided.verdict.allowed {
        true => None,
        // All quotas together refuse what none of them refuses alone.
        false => Some(refused(decided.verdict)),
    };
    let verdict = verdict.as_ref().unwrap_or(decided.verdict);
    let mut pen = Pen(out);
    pen.number(1, code(!allowed));
    for shown in decided.shown {
        pen.message(2, |pen| status(shown, pen));
    }
    let mut header = |key: &str, value: &str| {
        pen.message(3, |pen| {
            pen.small(1, key);
            pen.text(2, value);
        });
    };
    fields::each(verdict, profiles, decided.now_us, fields, &mut header);
    if !allowed {
        header("content-type", Problem::MEDIA_TYPE);
        let named = verdict
            .rows
            .iter()
            .filter(|row| row.refuses() && row.limit.disclose && row.source != Source::FailClosed);
        let (problem, quota) = problem_of(verdict);
        // Envoy answers 429 whatever refused, and a problem repeats the status.
        let problem = match problem.status() {
            429 => problem,
            _ => Problem::QuotaExceeded,
        };
        let retry_after_s = verdict.retry_after_us.map(retry_after_seconds);
        let names = named.map(|row| &*row.limit.name);
        let mut body = String::new();
        let status = decided.envoy.rate_limited_status;
        problem.render_refusal(status, names, retry_after_s, quota.as_ref(), &mut body);
        pen.text(5, &body);
    }
    if decided.envoy.dynamic_metadata {
        pen.message(6, |pen| metadata::write(asking, decided, verdict, pen));
    }
    allowed
}

/// What is counted.
pub(super) fn outcome(decided: &Decided<'_, '_>, allowed: bool) -> Outcome {
    let failed = |row: &Row<'_>| row.refuses() && row.source == Source::FailClosed;
    match allowed {
        true => Outcome::Admitted,
        false if decided.verdict.rows.iter().any(failed) => Outcome::FailClosed,
        false => Outcome::Refused,
    }
}

/// Over is who is refused by an ordinary descriptor, or by all that are quotas.
fn is_allowed(decided: &Decided<'_, '_>) -> bool {
    let mut quotas = decided.shown.iter().filter(|one| one.is_quota()).peekable();
    let over = quotas.peek().is_some() && quotas.all(Shown::is_over);
    decided.verdict.allowed && !over
}

fn refused<'a>(verdict: &Verdict<'a>) -> Verdict<'a> {
    let mut verdict = verdict.clone();
    verdict.allowed = false;
    let waits = verdict.rows.iter().filter(|row| row.refuses());
    let longest = waits.map(|row| row.outcome.retry_after_us).reduce(|a, b| Some(a?.max(b?)));
    verdict.retry_after_us = longest.flatten();
    if let Some(first) = verdict.rows.iter().find(|row| row.refuses()) {
        verdict.source = first.source;
    }
    verdict
}

/// `DescriptorStatus`.
fn status(shown: &Shown<'_>, pen: &mut Pen<'_>) {
    let visible = |row: &&&Row<'_>| (row.enforced() || row.limit.addressed) && row.limit.disclose;
    pen.number(1, code(shown.is_over()));
    let Some(row) = Row::tightest(shown.rows.iter().filter(visible).copied()) else {
        let unlimited = shown.rule.is_some_and(|rule| rule.limit.is_none());
        return pen.number(3, if unlimited { u32::MAX.into() } else { 0 });
    };
    let name = match (row.limit.addressed, shown.rule) {
        (true, Some(rule)) => rule.name.as_deref().unwrap_or_default(),
        _ if shown.own => "",
        _ => &row.limit.name,
    };
    pen.message(2, |pen| {
        pen.number(1, saturate(row.outcome.limit));
        pen.number(2, row.window_us.and_then(Unit::of_period_us).map_or(0, |unit| unit as u64));
        pen.text(3, name);
    });
    pen.number(3, saturate(row.outcome.remaining));
    // Whole seconds: Envoy cuts off what is less.
    pen.message(4, |pen| pen.number(1, row.outcome.reset_after_us.div_ceil(1_000_000)));
}

/// `Code`.
fn code(is_over: bool) -> u64 {
    i64::from(if is_over { OVER_LIMIT } else { OK }).cast_unsigned()
}

/// What fits into 32 bits.
fn saturate(value: u64) -> u64 {
    value.min(u32::MAX.into())
}
