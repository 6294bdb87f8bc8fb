//! Candidates inherit missing fields from their limit.

use tollgate_core::{Algorithm, LimitParams};
use tollgate_policy::compile;
use tollgate_policy::limit::{Limit, Mode, Selector};

fn limit(entry: &str) -> Limit {
    let text = format!("limits: [{{name: a, {entry}}}]");
    compile(text.as_bytes()).unwrap().limits.remove(0).0
}

/// The algorithm, count, period in seconds and capacity of the candidate.
fn candidate(entry: &str) -> (&'static str, u64, u64, u64) {
    let limit = limit(entry);
    let params: LimitParams = limit.candidate.unwrap().params;
    (params.algorithm(), params.count(), params.period_us() / 1_000_000, params.capacity())
}

#[test]
fn missing_fields_are_those_of_the_limit() {
    let bucket = "rate: 10/min, algorithm: token-bucket, burst: 30";
    let with = |fields: &str| candidate(&format!("{bucket}, candidate: {{{fields}}}"));
    assert_eq!(with("rate: 5/min"), ("token-bucket", 5, 60, 30));
    assert_eq!(with("burst: 7"), ("token-bucket", 10, 60, 7));
    assert_eq!(with("algorithm: sliding-window"), ("sliding-window", 10, 60, 10));
    assert_eq!(with("algorithm: token-bucket"), ("token-bucket", 10, 60, 30));
}

#[test]
fn tiers_are_those_of_the_limit_unless_the_candidate_has_some() {
    let tier = |fields: &str| {
        let entry = format!("rate: 10/min, tiers: {{pro: 20/min}}, candidate: {{{fields}}}");
        let candidate = limit(&entry).candidate.unwrap();
        candidate.tiers[0].1.unwrap().count()
    };
    assert_eq!((tier("rate: 5/min"), tier("tiers: {pro: 30/min}")), (20, 30));
}

#[test]
fn the_limit_of_a_candidate_is_hidden_and_never_enforced() {
    let mut base = limit("key: [user], rate: 10/min, penalty: {}, candidate: {rate: 5/min}");
    let hidden = base.candidate_limit(3).unwrap();
    assert_eq!((hidden.selector, hidden.mode), (Selector::Candidate(3), Mode::Shadow));
    assert!(hidden.selector.is_hidden() && hidden.penalty.is_none());
    assert_eq!(hidden.key, base.key);
    let own = (base.params.unwrap(), hidden.params.unwrap());
    assert_ne!(base.state_id(&own.0), hidden.state_id(&own.0), "a state of its own");
    base.mode = Mode::Off;
    assert_eq!(base.candidate_limit(3).unwrap().mode, Mode::Off);
}
