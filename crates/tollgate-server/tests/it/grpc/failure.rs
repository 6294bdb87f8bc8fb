//! A store that fails, or does not answer in time, is not an error: each limit's failure policy
//! decides.

use super::*;
use std::net::TcpListener;

const LIMITS: &str = "
  - {name: open, match: {descriptor.kind: open}, key: [descriptor.user], rate: 5/h}
  - {name: closed, match: {descriptor.kind: closed}, key: [descriptor.user], rate: 5/h, on_store_failure: closed}
  - {name: local, match: {descriptor.kind: local}, key: [descriptor.user], rate: 4/365d, algorithm: fixed-window, on_store_failure: {local: {nodes: 2}}}
";

fn asked(kind: &str) -> Vec<RateLimitDescriptor> {
    vec![descriptor(&[("kind", kind), ("user", "ann")])]
}

fn check(node: &Node) {
    for _ in 0..3 {
        let response = node.ask("edge", asked("open"));
        assert_eq!(response.overall_code, OK);
        assert_eq!(header(&response, "x-tollgate-source"), Some("fail-open"));
    }
    let response = node.ask("edge", asked("closed"));
    assert_eq!((response.overall_code, response.statuses[0].code), (OVER_LIMIT, OVER_LIMIT));
    assert_eq!(header(&response, "x-tollgate-source"), Some("fail-closed"));
    assert_eq!(header(&response, "retry-after"), Some("1"));
    let body: serde_json::Value = serde_json::from_slice(&response.raw_body).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["closed"]), "{body}");
    let local: Vec<_> = (0..3).map(|_| left(&node.ask("edge", asked("local")))[0].0).collect();
    assert_eq!(local, [true, true, false], "this node's share");
}

#[test]
fn a_store_that_is_not_there() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check(&Node::start(
        &format!("store: {{redis: {{url: 'redis://{unused}'}}}}\nlimits:{LIMITS}"),
        &[],
    ));
}

#[test]
fn a_store_that_never_answers_keeps_no_caller_beyond_its_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = silent.local_addr().unwrap();
    // A call that waited for the store would take a minute. The circuit breaker stays closed.
    let store = format!(
        "store: {{redis: {{url: 'redis://{url}', deadline: 60s, breaker: {{errors: 1000000}}}}}}"
    );
    check(&Node::start(&format!("{store}\nlimits:{LIMITS}"), &[]));
}

#[test]
fn files_follow_the_policy_of_the_whole_file() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = "{domain: edge, descriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: 3}}]}";
    for (policy, code) in [("open", OK), ("closed", OVER_LIMIT)] {
        let rest = format!(
            "store: {{redis: {{url: 'redis://{unused}'}}}}\non_store_failure: {policy}\nenvoy: {{configs: edge.yaml}}"
        );
        let node = Node::start(&rest, &[("edge.yaml", file)]);
        assert_eq!(node.ask("edge", vec![user("ann")]).overall_code, code);
    }
}

/// A node enforces its share of inline limits too.
#[test]
fn limits_of_callers_follow_the_policy_of_the_whole_file() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (policy, codes) in [
        ("open", [OK; 4]),
        ("closed", [OVER_LIMIT; 4]),
        ("{local: {nodes: 2}}", [OK, OK, OVER_LIMIT, OVER_LIMIT]),
    ] {
        let node = Node::start(
            &format!("store: {{redis: {{url: 'redis://{unused}'}}}}\non_store_failure: {policy}"),
            &[],
        );
        let ask = || node.ask("edge", vec![own(user("ann"), 4, YEAR)]).overall_code;
        assert_eq!([(); 4].map(|()| ask()), codes, "{policy}");
    }
}
