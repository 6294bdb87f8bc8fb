//! `on_store_failure`.

use super::params::{ParamsByTier, invalid};
use crate::compile::fields::{missing, number_u32};
use crate::diagnostic::{Position, Report, codes, quoted};
use crate::grammar::{self, Problem};
use crate::limit::{LocalRate, OnStoreFailure};
use crate::raw::{self, At, FailureLocal, FailureWord, Field, RateText};
use tollgate_core::written_rate::WrittenRate;
use tollgate_core::{CalendarUnit, Rate};

pub(crate) fn on_store_failure(
    field: &Field<raw::OnStoreFailure>,
    report: &mut Report,
) -> Option<OnStoreFailure> {
    let field = field.as_ref()?;
    Some(match &field.value {
        raw::OnStoreFailure::Word(FailureWord::Open) => OnStoreFailure::Open,
        raw::OnStoreFailure::Word(FailureWord::Closed) => OnStoreFailure::Closed,
        raw::OnStoreFailure::Word(FailureWord::Local) => OnStoreFailure::Local { nodes: 1 },
        raw::OnStoreFailure::Form(form) => match &form.local {
            Some(local) => on_this_node(local, report),
            None => {
                missing("local", (field.at, &form.unreadable), report);
                OnStoreFailure::Open
            }
        },
    })
}

fn on_this_node(local: &At<FailureLocal>, report: &mut Report) -> OnStoreFailure {
    let share = OnStoreFailure::Local { nodes: number_u32(&local.nodes, 1, (1, u32::MAX), report) };
    let Some(rate) = &local.rate else { return share };
    if local.nodes.is_some() {
        let message = "`nodes` and `rate` are given together";
        let help = "keep `nodes` for a share of the limit, or `rate` for a rate of its own";
        report.error(codes::EXACTLY_ONE, local.at, message, help);
    }
    local_rate(rate, report).map_or(share, OnStoreFailure::LocalRate)
}

fn local_rate(rate: &At<RateText>, report: &mut Report) -> Option<LocalRate> {
    let shape = |message: String, help| Problem::new(codes::RATE_SHAPE, message, help);
    let parsed = match report.accept(rate.at, grammar::rate(rate))? {
        WrittenRate::Unlimited => Err(shape(
            "a rate without a limit admits everything".to_owned(),
            "write `on_store_failure: open`",
        )),
        WrittenRate::Per { unit: Some(CalendarUnit::Month), .. } => Err(shape(
            format!("{} is by the month, and no outage lasts so long", quoted(rate)),
            "write a rate by the minute or the hour",
        )),
        WrittenRate::Slots(slots) => Rate::try_new(slots, Rate::NOTHING.period_us())
            .map(|rate| LocalRate::Slots(rate.count()))
            .map_err(invalid),
        WrittenRate::Per { count, period_us, .. } => {
            Rate::try_new(count, period_us).map(LocalRate::Per).map_err(invalid)
        }
    };
    report.accept(rate.at, parsed)
}

/// Checks that a local rate fits the algorithm of its limit. A rate written in the limit must also
/// be stricter than the limit in some respect. A rate from the file's default need not be: where it
/// is looser, the limit's own parameters apply.
pub(super) fn check_local_rate(
    entry: &At<raw::Limit>,
    on_store_failure: OnStoreFailure,
    params: &ParamsByTier,
    report: &mut Report,
) {
    let (OnStoreFailure::LocalRate(local), Some(base)) = (on_store_failure, params.base.params)
    else {
        return;
    };
    let own_at = entry.on_store_failure.as_ref().map(rate_at);
    let at = own_at.unwrap_or_else(|| entry.name.as_ref().map_or(entry.at, |name| name.at));
    let whose = if own_at.is_some() { "" } else { "the default " };
    let Some(exact) = local.exact_params(&base) else {
        let name = params.algorithm.word();
        let message = format!("{whose}`on_store_failure` has a rate that does not fit `{name}`");
        let help = match params.algorithm {
            raw::Algorithm::Concurrency => "give the limit slots: `{local: {rate: 5}}`",
            _ => "give the limit units per time: `{local: {rate: 20/min}}`",
        };
        report.error(codes::RATE_SHAPE, at, message, help);
        return;
    };
    let (in_long_run, at_once) = exact.compare(&base);
    let is_looser =
        (in_long_run.is_ge() && at_once.is_gt()) || (in_long_run.is_gt() && at_once.is_ge());
    if is_looser && own_at.is_some() {
        let message = "one node alone would admit more than the whole limit while the store fails";
        let help = "lower the rate of `local` below the limit's, or write `local: {nodes: N}`";
        report.error(codes::LOCAL_RATE_TOO_HIGH, at, message, help);
    }
}

/// The position of the rate, or of the field if it has no rate.
pub(crate) fn rate_at(field: &At<raw::OnStoreFailure>) -> Position {
    let raw::OnStoreFailure::Form(form) = &field.value else { return field.at };
    let rate = form.local.as_ref().and_then(|local| local.rate.as_ref());
    rate.map_or(field.at, |rate| rate.at)
}
