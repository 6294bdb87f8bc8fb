//! Explanations: why a request would be admitted or refused, limit by limit. Nothing is charged.

use super::{DecisionRequest, Gate};
use crate::engine::{AdmissionOptions, GateBuffers, Row, Rules, Verdict};
use tollgate_core::{Intent, LimitParams, LimitState, Outcome};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{Limit, Selector};
use tollgate_policy::policy::{Applicability, Policy, Selected};
use tollgate_store::LeaseStore;

/// The decision on a request, with reasons.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation<'r> {
    /// The answer of [`Gate::peek`], without the deny cache.
    pub verdict: Verdict<'r>,
    /// Every limit, in file order. Limits of shedders are left out.
    pub limits: Vec<ExplainedLimit<'r>>,
    /// The name of the request's class, if a shedder is on.
    pub class: Option<&'r str>,
}

/// One limit, and why it applies or not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExplainedLimit<'r> {
    /// The limit.
    pub limit: &'r Limit,
    /// Whether it applies, and why not.
    pub applicability: Applicability<'r>,
    /// The answer for each key of the request: none if the limit does not apply, and several if
    /// readings of the path give several keys.
    pub decisions: Vec<ExplainedDecision<'r>>,
}

/// The answer of one limit for one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExplainedDecision<'r> {
    /// The answer; its figures are those before the request.
    pub row: Row<'r>,
    /// The parameters of the request's tier.
    pub params: LimitParams,
    /// The tier that the limit has these parameters for; `None` if they are those of `rate`.
    pub tier: Option<&'r str>,
    /// Units that the request costs.
    pub cost: u64,
    /// The attributes of the key.
    pub key: &'r [Box<str>],
    /// Whether a part of the key is missing, so that the limit refuses.
    pub is_key_missing: bool,
    /// The units that the key uses, also those beyond the limit.
    pub used: u64,
    /// The state of the key; `None` if the store cannot tell.
    pub state: Option<LimitState>,
    /// The answer of the limit's candidate.
    pub candidate: Option<ExplainedCandidate>,
}

/// The answer of a candidate for one key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ExplainedCandidate {
    /// The parameters of the request's tier.
    pub params: LimitParams,
    /// The answer; its figures are those before the request.
    pub outcome: Outcome,
}

impl<S: LeaseStore> Gate<S> {
    /// Explains the answer of [`peek`](Self::peek). Selects and decides by the functions that
    /// check and peek use. If the store fails, rows come from failure policies, without states.
    pub async fn explain<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
    ) -> Explanation<'r> {
        let mut gate_buffers = GateBuffers::default();
        let policy = rules.policy();
        let GateBuffers { selection, answers, rows, decision_buffers: buffers, .. } =
            &mut gate_buffers;
        let options = AdmissionOptions { cost, is_end_seen: false, ..Default::default() };
        let peek = Intent::Peek;
        let mut request =
            DecisionRequest::select(rules, now_us, facts, &options, peek, selection, buffers);
        // The deny cache knows only refusals, so it could not show every row.
        request.uses_deny_cache = false;
        let verdict = self.decide_verdict(request, peek, (answers, buffers), rows).await;
        let mut limits: Vec<ExplainedLimit<'r>> = Vec::new();
        for one in policy.explain(facts) {
            let (limit, applicability) = (one.limit, one.applicability);
            limits.push(ExplainedLimit { limit, applicability, decisions: Vec::new() });
        }
        // Rows and selected limits are in the same order; those of the fleet have no row.
        for (one, row) in policy.selected(&gate_buffers.selection).zip(&verdict.rows) {
            let mut decision = self.explain_row(rules, now_us, &one, row).await;
            let is_stored = !row.source.is_without_store();
            decision.candidate = candidate_of(policy, &gate_buffers, &one).filter(|_| is_stored);
            let explained = limits.iter_mut().find(|known| std::ptr::eq(known.limit, row.limit));
            explained.into_iter().for_each(|known| known.decisions.push(decision.clone()));
        }
        let class = verdict.shed.and_then(|shed| policy.classes().nth(shed.class));
        Explanation { verdict, limits, class }
    }

    async fn explain_row<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        one: &Selected<'_>,
        row: &Row<'r>,
    ) -> ExplainedDecision<'r> {
        let mut state = None;
        let mut used = row.outcome.limit.saturating_sub(row.outcome.remaining);
        if !one.missing && !row.source.is_without_store() {
            state = self.store.read_state(&rules.plain_charge(one)).await.ok().flatten();
            used = self.used(rules, now_us, one, &row.outcome).await.unwrap_or(used);
        }
        let limit = row.limit;
        let tier = rules.tier_of(one).map(|tier| &**tier);
        ExplainedDecision {
            row: *row,
            params: *one.params,
            tier: tier.filter(|tier| limit.tiers.iter().any(|(name, _)| **name == **tier)),
            cost: one.cost,
            key: limit.keys().nth(one.key_index).unwrap_or(&limit.key),
            is_key_missing: one.missing,
            used,
            state,
            candidate: None,
        }
    }
}

/// The answer of the candidate of a limit, which the store gave with the others.
fn candidate_of(
    policy: &Policy,
    gate_buffers: &GateBuffers,
    base: &Selected<'_>,
) -> Option<ExplainedCandidate> {
    let mut selected = policy.selected(&gate_buffers.selection);
    let is_candidate = |one: &Selected<'_>| {
        one.limit.selector == Selector::Candidate(base.index) && one.key == base.key
    };
    let (_, answers) = gate_buffers.answers.get(0)?;
    let place = selected.clone().position(|one| is_candidate(&one))?;
    let params = *selected.nth(place)?.params;
    Some(ExplainedCandidate { params, outcome: answers.get(place)?.outcome })
}
