//! Files of envoyproxy/ratelimit, counted as in the original, or strictly.

use super::*;

const EDGE: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {name: each, unit: year, requests_per_unit: 3}
  - {key: user, value: root, rate_limit: {unlimited: true}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: none, rate_limit: {unit: year, requests_per_unit: 0}}
  - key: plan
    value: free
    metadata: {team: a, weight: 2}
    rate_limit: {name: free, unit: year, requests_per_unit: 5}
    descriptors:
      - {key: user, rate_limit: {unit: year, requests_per_unit: 9, replaces: [{name: free}]}}
  - {key: q, value: one, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: q, value: two, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 2}}
";

fn node(compat: &str) -> Node {
    Node::start(&format!("envoy: {{configs: edge.yaml, compat: {compat}}}"), &[("edge.yaml", EDGE)])
}

#[test]
fn the_original_counts_refusals() {
    let node = node("envoy");
    let ask = |value| left(&node.ask("edge", vec![hits(user("ann"), value)]))[0];
    assert_eq!(ask(2), (true, 1));
    assert_eq!(ask(2), (false, 0));
    assert_eq!(ask(0), (false, 0), "a look passes only up to the limit");
    assert_eq!(ask(1), (false, 0), "the refusal was charged");
    let bob = |value| left(&node.ask("edge", vec![hits(user("bob"), value)]))[0];
    assert_eq!((bob(3), bob(0)), ((true, 0), (true, 0)), "and passes at it");
    let response = node.ask("edge", vec![user("cid"), user("ann")]);
    assert_eq!(left(&response), [(true, 2), (false, 0)]);
    assert_eq!(left(&node.ask("edge", vec![user("cid")])), [(true, 1)], "others are charged too");
    let limit = response.statuses[0].current_limit.clone().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (3, YEAR, "each"));
}

#[test]
fn strict_refusals_are_free() {
    let node = node("strict");
    let ask = |value| left(&node.ask("edge", vec![hits(user("ann"), value)]))[0];
    assert_eq!((ask(2), ask(2), ask(1)), ((true, 1), (false, 1), (true, 0)));
    assert_eq!(ask(0), (false, 0), "a look is for one");
    let response = node.ask("edge", vec![user("cid"), user("ann")]);
    assert_eq!(left(&response), [(true, 3), (false, 0)], "all or nothing");
}

#[test]
fn what_matches_nothing_is_admitted() {
    for compat in ["envoy", "strict"] {
        let node = node(compat);
        let response = node.ask("edge", vec![descriptor(&[("unknown", "x")]), user("root")]);
        assert_eq!(left(&response), [(true, 0), (true, u32::MAX)], "unlimited shows as much");
        assert!(response.statuses.iter().all(|status| status.current_limit.is_none()));
        assert_eq!(left(&node.ask("nowhere", vec![user("ann")])), [(true, 0)]);
        assert_eq!(left(&node.ask("nowhere", vec![own(user("ann"), 0, YEAR)])), [(true, 0)]);
        assert_eq!(left(&node.ask("edge", vec![descriptor(&[("none", "x")])])), [(false, 0)]);
        assert_eq!(left(&node.ask("edge", vec![own(user("ann"), 0, YEAR)])), [(false, 0)]);
    }
}

#[test]
fn shadows_are_counted_and_refuse_nobody() {
    for compat in ["envoy", "strict"] {
        let node = node(compat);
        let ask = || node.ask("edge", vec![descriptor(&[("shadow", "x")])]);
        assert_eq!((left(&ask()), left(&ask())), (vec![(true, 0)], vec![(true, 0)]));
        let response = ask();
        assert_eq!(response.overall_code, OK);
        assert_eq!(response.statuses[0].current_limit.clone().unwrap().requests_per_unit, 1);
        assert!(header(&response, "ratelimit").is_none(), "not in fields");
    }
}

#[test]
fn a_replaced_limit_is_left_out() {
    let node = node("envoy");
    let plan = || descriptor(&[("plan", "free")]);
    let both = || vec![plan(), descriptor(&[("plan", "free"), ("user", "ann")])];
    let response = node.ask("edge", both());
    assert_eq!(left(&response), [(true, 0), (true, 8)]);
    assert!(response.statuses[0].current_limit.is_none());
    assert_eq!(left(&node.ask("edge", vec![plan()])), [(true, 4)], "it was not counted");
}

#[test]
fn quotas_refuse_together() {
    for compat in ["envoy", "strict"] {
        let node = node(compat);
        let quota = |value| descriptor(&[("q", value)]);
        let both = || node.ask("edge", vec![quota("one"), quota("two")]);
        assert_eq!((both().overall_code, both().overall_code), (OK, OK), "one of them is left");
        let response = both();
        assert_eq!(response.overall_code, OVER_LIMIT, "{compat}");
        assert!(response.statuses.iter().all(|status| status.code == OVER_LIMIT));
        assert!(header(&response, "retry-after").is_some() && !response.raw_body.is_empty());
        assert_eq!(node.ask("edge", vec![quota("one"), user("ann")]).overall_code, OVER_LIMIT);
    }
}

/// A peek at an exhausted quota refuses no more requests than a charge does.
#[test]
fn a_quota_that_is_only_looked_at_refuses_nobody_alone() {
    for compat in ["envoy", "strict"] {
        let node = node(compat);
        let quota = |value, units| hits(descriptor(&[("q", value)]), units);
        assert_eq!(node.ask("edge", vec![quota("one", 1)]).overall_code, OK);
        assert_eq!(node.ask("edge", vec![quota("one", 1)]).overall_code, OVER_LIMIT);
        let response = node.ask("edge", vec![quota("two", 1), quota("one", 0)]);
        assert_eq!(
            (response.overall_code, response.statuses[1].code),
            (OK, OVER_LIMIT),
            "{compat}"
        );
    }
}

#[test]
fn native_limits_and_files_count_together() {
    let limits = "limits: [{name: all, key: [domain], rate: 4/365d, algorithm: fixed-window}]";
    let rest = format!("envoy: {{configs: edge.yaml, compat: strict}}\n{limits}");
    let node = Node::start(&rest, &[("edge.yaml", EDGE)]);
    let ask = |name| node.ask("edge", vec![user(name)]);
    assert_eq!(left(&ask("ann")), [(true, 2)], "the tightest shows");
    assert_eq!((left(&ask("bob")), left(&ask("bob"))), (vec![(true, 2)], vec![(true, 1)]));
    assert_eq!((left(&ask("cid")), left(&ask("dan"))), (vec![(true, 0)], vec![(false, 0)]));
    let name = |response: &RateLimitResponse| {
        response.statuses[0].current_limit.clone().map(|limit| limit.name)
    };
    assert_eq!(name(&ask("eve")).as_deref(), Some("all"));
}
