//! The JSON of an explanation.

use super::describe::DescribedRequest;
use super::words;
use crate::front::admin::encode::{NumbersView, TierView, optional_seconds, seconds};
use crate::front::http::encode;
use serde::Serialize;
use serde_json::value::RawValue;
use tollgate::engine::{ExplainedCandidate, ExplainedDecision, ExplainedLimit, Explanation, Rules};
use tollgate_observe::time::rfc3339;
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::OnStoreFailure;
use tollgate_policy::match_spec::Condition;
use tollgate_policy::policy::Applicability;
use tollgate_policy::settings::Settings;

/// An explanation: the output of `GET /v1/explain` and `tollgate explain --format json`.
#[derive(Serialize)]
pub struct ExplanationView<'a> {
    time: String,
    allowed: bool,
    /// The status of the response: 200 if admitted, else that of the refusal.
    status: u16,
    delay: Box<RawValue>,
    retry_after: Box<RawValue>,
    source: &'static str,
    /// The class of the request, if a shedder is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    /// The reason of a shedder's refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    shed: Option<&'static str>,
    tier: Option<TierView<'a>>,
    limits: Vec<ExplainedLimitView<'a>>,
}

#[derive(Serialize)]
struct ExplainedLimitView<'a> {
    name: &'a str,
    mode: &'static str,
    applies: bool,
    /// The reason why the limit does not apply, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    /// The unmet condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    unmet: Option<UnmetView<'a>>,
    on_store_failure: String,
    /// One decision per key of the request. A request has one key, unless its path has several
    /// readings.
    decisions: Vec<ExplainedDecisionView<'a>>,
}

#[derive(Serialize)]
struct UnmetView<'a> {
    attribute: &'a str,
    /// The patterns; empty if the values of the attribute are secret.
    patterns: &'a [String],
    value: Option<String>,
}

#[derive(Serialize)]
struct ExplainedDecisionView<'a> {
    allowed: bool,
    /// The reason of the decision, in words.
    reason: String,
    key: Vec<KeyPartView<'a>>,
    #[serde(flatten)]
    params: NumbersView,
    /// The tier of the numbers; null for those of `rate`.
    tier: Option<&'a str>,
    cost: u64,
    /// Units used before the request.
    used: u64,
    remaining: u64,
    reset_after: Box<RawValue>,
    retry_after: Box<RawValue>,
    /// The time from which the limit would admit a refused request, if waiting helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    admits_at: Option<String>,
    source: &'static str,
    blocked: bool,
    /// The answer of the limit's candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<ExplainedCandidateView>,
}

#[derive(Serialize)]
struct ExplainedCandidateView {
    allowed: bool,
    #[serde(flatten)]
    params: NumbersView,
    used: u64,
    remaining: u64,
    retry_after: Box<RawValue>,
}

impl ExplainedCandidateView {
    fn new(candidate: &ExplainedCandidate) -> Self {
        let ExplainedCandidate { params, outcome, .. } = candidate;
        Self {
            allowed: outcome.admitted,
            params: NumbersView::new(Some(params)),
            used: outcome.limit.saturating_sub(outcome.remaining),
            remaining: outcome.remaining,
            retry_after: optional_seconds(outcome.retry_after_us),
        }
    }
}

#[derive(Serialize)]
struct KeyPartView<'a> {
    attribute: &'a str,
    /// The value; null if the request lacks the attribute.
    value: Option<String>,
    from: String,
}

impl<'a> ExplanationView<'a> {
    /// Creates the view of an explanation at `now_us`.
    pub fn new(
        rules: &'a Rules,
        settings: &Settings,
        request: &DescribedRequest,
        facts: &Facts<'_>,
        explained: &Explanation<'a>,
        now_us: u64,
    ) -> Self {
        let verdict = &explained.verdict;
        let viewer = Viewer { rules, request, facts, now_us };
        let mut tier = TierView::new(rules, facts, settings);
        if request.named_tier(rules).is_some() {
            tier.iter_mut().for_each(TierView::show_named);
        }
        Self {
            time: rfc3339(now_us),
            allowed: verdict.allowed,
            status: encode::status(verdict),
            delay: seconds(verdict.delay_us),
            retry_after: optional_seconds(verdict.retry_after_us),
            source: verdict.source.as_str(),
            class: explained.class,
            shed: verdict.shed.and_then(|shed| shed.reason).map(|reason| reason.name()),
            tier,
            limits: explained.limits.iter().map(|limit| viewer.limit(limit)).collect(),
        }
    }

    /// Whether the request would be admitted.
    pub fn allowed(&self) -> bool {
        self.allowed
    }
}

/// The context of limit views.
struct Viewer<'v, 'f> {
    rules: &'v Rules,
    request: &'v DescribedRequest,
    facts: &'v Facts<'f>,
    now_us: u64,
}

impl Viewer<'_, '_> {
    fn limit<'a>(&self, explained: &ExplainedLimit<'a>) -> ExplainedLimitView<'a> {
        let ExplainedLimit { limit, applicability, decisions, .. } = explained;
        let unmet = match applicability {
            Applicability::Unmet { attribute, patterns, value } => {
                let value = value.as_deref();
                let value = value.map(|value| self.request.shown(self.rules, attribute, value));
                let patterns = if self.is_secret(attribute) { &[] } else { *patterns };
                Some(UnmetView { attribute, patterns, value })
            }
            _ => None,
        };
        ExplainedLimitView {
            name: &limit.name,
            mode: limit.mode.word(),
            applies: *applicability == Applicability::Applies,
            why_not: self.why_not(applicability, unmet.as_ref()),
            unmet,
            on_store_failure: failure_word(limit.on_store_failure),
            decisions: decisions.iter().map(|decision| self.decision(decision)).collect(),
        }
    }

    fn why_not(
        &self,
        applicability: &Applicability<'_>,
        unmet: Option<&UnmetView<'_>>,
    ) -> Option<String> {
        Some(match applicability {
            Applicability::Applies => return None,
            Applicability::Off => "the limit is off".to_owned(),
            Applicability::Addressed => "the limit applies only to descriptors of Envoy".to_owned(),
            Applicability::Unlimited => "the limit is unlimited for this tier".to_owned(),
            Applicability::Excluded { conditions } => {
                format!("not excludes it: {}", self.conditions_text(conditions))
            }
            Applicability::KeyMissing { attributes } => {
                let part =
                    |name: &&str| format!("{name} ({})", self.request.origin(self.rules, name));
                let parts: Vec<String> = attributes.iter().map(part).collect();
                format!("the request lacks {}", parts.join(" and "))
            }
            _ => {
                let unmet = unmet?;
                let wanted = match unmet.patterns {
                    [] => "what the policy says".to_owned(),
                    patterns => patterns.join(" or "),
                };
                match &unmet.value {
                    Some(value) => format!("{} is {value}, not {wanted}", unmet.attribute),
                    None => format!("{} is missing, must be {wanted}", unmet.attribute),
                }
            }
        })
    }

    /// Whether patterns on the attribute are secret, like its values.
    fn is_secret(&self, attribute: &str) -> bool {
        attribute == "api_key" || self.rules.http_policy().holds_secret(attribute)
    }

    fn conditions_text(&self, conditions: &[Condition]) -> String {
        let text = |one: &Condition| {
            let is_secret = self.is_secret(&one.attribute);
            let patterns = || one.patterns.join(" or ");
            let is = if is_secret { "what the policy says".to_owned() } else { patterns() };
            format!("{} is {is}", one.attribute)
        };
        conditions.iter().map(text).collect::<Vec<_>>().join(" and ")
    }

    fn decision<'a>(&self, decision: &ExplainedDecision<'a>) -> ExplainedDecisionView<'a> {
        let outcome = &decision.row.outcome;
        let wait_us = outcome.retry_after_us.filter(|_| !outcome.admitted);
        ExplainedDecisionView {
            allowed: outcome.admitted,
            reason: words::reason(decision, self.facts.unverified(), self.now_us),
            key: decision.key.iter().map(|name| self.key_part(name)).collect(),
            params: NumbersView::new(Some(&decision.params)),
            tier: decision.tier,
            cost: decision.cost,
            used: decision.used,
            remaining: outcome.remaining,
            reset_after: seconds(outcome.reset_after_us),
            retry_after: optional_seconds(outcome.retry_after_us),
            admits_at: wait_us.map(|wait_us| rfc3339(self.now_us.saturating_add(wait_us))),
            source: decision.row.source.as_str(),
            blocked: decision.row.blocked,
            candidate: decision.candidate.as_ref().map(ExplainedCandidateView::new),
        }
    }

    fn key_part<'a>(&self, attribute: &'a str) -> KeyPartView<'a> {
        let value = self.facts.get(attribute);
        let value = value.map(|value| self.request.shown(self.rules, attribute, &value));
        KeyPartView { attribute, value, from: self.request.origin(self.rules, attribute) }
    }
}

/// The failure policy, as the file writes it.
fn failure_word(policy: OnStoreFailure) -> String {
    match policy {
        OnStoreFailure::Open => "open".to_owned(),
        OnStoreFailure::Closed => "closed".to_owned(),
        OnStoreFailure::Local { nodes } => format!("local, {nodes} nodes"),
        OnStoreFailure::LocalRate(_) => "local, by rate".to_owned(),
    }
}
