//! Tests of costs by match.

use super::{facts, rows};
use crate::policy::{Policy, PolicyOptions};

fn policy(text: &str) -> Policy {
    let compiled = crate::compile(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:#?}"));
    Policy::new(compiled.limits, PolicyOptions::default()).unwrap()
}

const WEIGHTED: &str = "
limits:
  - name: units
    match: {path: /v1/**}
    key: [user]
    rate: 1000/min
    cost:
      - {match: {path: /v1/embed/**, not: {method: HEAD}}, units: 10}
      - {match: {path: /v1/status}, units: 0}
      - {match: {header.x-model: [large, huge]}, units: 4294967295}
      - {match: {ip: 10.0.0.0/8}, units: 3}
  - {name: plain, match: {path: /v1/**}, key: [user], rate: 100/min, cost: 2}
  - {name: rest, match: {path: /v1/**}, key: [user], rate: 100/min, cost: [{units: 7}]}
";

#[test]
fn the_first_entry_that_matches_counts_and_one_without_any() {
    let policy = policy(WEIGHTED);
    let cost = |attributes: &[(&str, &str)], cost: u64| {
        let rows = rows(&policy, &facts(&policy, attributes), cost);
        let [weighted, plain, rest] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((plain.2, rest.2), (cost.saturating_mul(2), cost.saturating_mul(7)));
        weighted.2
    };
    let read = [("user", "1"), ("path", "/v1/read"), ("method", "GET")];
    let embed = [("user", "1"), ("path", "/v1/embed/x"), ("method", "POST")];
    assert_eq!(cost(&read, 1), 1);
    assert_eq!(cost(&embed, 1), 10);
    assert_eq!(cost(&embed, 3), 30, "times the request's own");
    assert_eq!(cost(&embed, u64::MAX), u64::MAX);
    assert_eq!(cost(&[("user", "1"), ("path", "/v1/embed/x"), ("method", "head")], 1), 1);
    // A missing attribute does not match, not even inside `not`.
    assert_eq!(cost(&[("user", "1"), ("path", "/v1/embed/x")], 1), 10);
    assert_eq!(cost(&[("user", "1"), ("path", "/v1/status"), ("ip", "10.0.0.1")], 1), 0);
    let model = |path| [("user", "1"), ("path", path), ("header.x-model", "huge")];
    assert_eq!(cost(&model("/v1/read"), 1), 4_294_967_295);
    assert_eq!(cost(&model("/v1/embed/"), 1), 10);
    assert_eq!(cost(&[("user", "1"), ("path", "/v1/read"), ("ip", "10.1.2.3")], 1), 3);
}

/// Front ends read the attributes that the policy uses, so those of costs must be among them.
#[test]
fn attributes_of_costs_are_read_from_requests() {
    let policy = policy(WEIGHTED);
    for name in ["path", "method", "header.x-model", "ip", "user"] {
        assert!(policy.attribute(name).is_some(), "{name}");
    }
    assert!(policy.attribute("host").is_none());
}

/// If costs were part of the state id, a change of costs would reset every count.
#[test]
fn costs_are_no_part_of_whose_state_it_is() {
    let (weighted, plain) = (policy(WEIGHTED), policy(&WEIGHTED.replace("units: 10", "units: 11")));
    assert_eq!(weighted.tier_params()[0].id, plain.tier_params()[0].id);
}

/// A path with two readings costs as much as the more expensive reading.
#[test]
fn a_cheap_reading_of_a_path_does_not_lower_the_cost() {
    let policy = policy(
        "limits: [{name: l, rate: 9/min, cost: [{match: {path: /free/}, units: 0}, {match: {path: /free}, units: 7}]}]",
    );
    let cost = |path| rows(&policy, &facts(&policy, &[("path", path)]), 1)[0].2;
    assert_eq!((cost("/free/"), cost("/free")), (0, 7));
    assert_eq!(cost("/free/."), 7);
}
