//! `candidate`: parameters that are counted beside those of the limit, and never enforced.

use super::params::{ParamsByTier, params_by_tier};
use crate::diagnostic::{Report, codes};
use crate::limit::{CandidateParams, Consistency, Counting};
use crate::raw::{Algorithm, At, CandidateForm, Limit};

/// Returns the parameters of a candidate: those of the limit, with the candidate's fields in their
/// place. If the candidate changes the algorithm, the limit's `burst`, `queue`, `time_zone` and
/// `ttl` do not apply.
pub(super) fn candidate(
    entry: &At<Limit>,
    (consistency, counting): (Consistency, Counting),
    report: &mut Report,
) -> Option<Box<CandidateParams>> {
    let field = entry.candidate.as_ref()?;
    let form = &field.value;
    if is_empty(form) {
        let message = "the candidate changes nothing";
        let help = "give it a field of the limit, such as `candidate: {rate: 500/day}`";
        report.error(codes::BAD_CANDIDATE, field.name_at, message, help);
        return None;
    }
    let changed = with_fields_of(entry, form);
    let obstacle = match changed.algorithm() {
        Algorithm::Concurrency => Some("`concurrency` holds slots, and a candidate holds none"),
        _ if entry.algorithm() == Algorithm::Concurrency => {
            Some("the limit holds slots, which no other algorithm counts")
        }
        _ if counting == Counting::Debt => Some("a limit with `debt` cannot have a candidate"),
        _ if consistency != Consistency::Exact => Some("a leased limit cannot have a candidate"),
        _ => None,
    };
    if let Some(message) = obstacle {
        let help = "remove `candidate`, and compare with `tollgate compare` on an access log";
        report.error(codes::BAD_CANDIDATE, field.name_at, message, help);
        return None;
    }
    let ParamsByTier { base, tiers, .. } = params_by_tier(&changed, report)?;
    let Some(params) = base.params else {
        let message = "an unlimited candidate refuses nothing";
        let help = "remove `candidate`: without the limit, everything that it refuses passes";
        report.error(codes::BAD_CANDIDATE, field.name_at, message, help);
        return None;
    };
    let tiers = tiers.into_iter().map(|(name, tier)| (name, tier.params)).collect();
    Some(Box::new(CandidateParams { params, tiers }))
}

fn is_empty(form: &CandidateForm) -> bool {
    let CandidateForm { algorithm, rate, burst, queue, time_zone, tiers, .. } = form;
    algorithm.is_none()
        && rate.is_none()
        && burst.is_none()
        && queue.is_none()
        && time_zone.is_none()
        && tiers.is_none()
}

/// Returns a copy of the entry in which the candidate's fields replace those of the limit.
fn with_fields_of(entry: &At<Limit>, form: &CandidateForm) -> At<Limit> {
    let mut changed = entry.clone();
    let limit = &mut changed.value;
    let algorithm = limit.algorithm();
    limit.candidate = None;
    if form.algorithm.as_ref().is_some_and(|other| other.value != algorithm) {
        (limit.burst, limit.queue, limit.time_zone, limit.ttl) = (None, None, None, None);
    }
    limit.algorithm = form.algorithm.clone().or(limit.algorithm.take());
    limit.rate = form.rate.clone().or(limit.rate.take());
    limit.burst = form.burst.clone().or(limit.burst.take());
    limit.queue = form.queue.clone().or(limit.queue.take());
    limit.time_zone = form.time_zone.clone().or(limit.time_zone.take());
    limit.tiers = form.tiers.clone().or(limit.tiers.take());
    changed
}
