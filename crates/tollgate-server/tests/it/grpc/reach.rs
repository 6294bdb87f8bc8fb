//! Descriptors can use every kind of limit of a policy.

use super::*;
use crate::exposition::Page;
use crate::http::Client;
use std::net::TcpStream;

/// Limits of two units, one for each algorithm, and a tier with four units.
fn file() -> String {
    let mut limits = String::new();
    for algorithm in [
        "fixed-window",
        "sliding-window",
        "sliding-log",
        "token-bucket",
        "gcra",
        "leaky-bucket, burst: 2",
        "concurrency",
    ] {
        let name = algorithm.split(',').next().unwrap();
        let rate = |count: u32| match name {
            "concurrency" => count.to_string(),
            _ => format!("{count}/365d"),
        };
        let tier = match name {
            "leaky-bucket" => "{rate: 4/365d, burst: 4}".to_owned(),
            _ => rate(4),
        };
        limits += &format!(
            "  - {{name: {name}, match: {{descriptor.limit: {name}}}, key: [descriptor.user], rate: {}, algorithm: {algorithm}, tiers: {{pro: {tier}}}}}\n",
            rate(2)
        );
    }
    limits += "  - {name: 'off', match: {descriptor.limit: 'off'}, rate: 0/h, mode: 'off'}
  - {name: watched, match: {descriptor.limit: watched}, rate: 0/h, mode: shadow}
  - {name: blocked, match: {descriptor.limit: blocked}, key: [descriptor.user], rate: 1/s, penalty: {after: 1, block: 1h, max: 2h}}
";
    format!("tiers: {{default: free, from: descriptor.plan}}\nlimits:\n{limits}")
}

#[test]
fn every_algorithm_and_tier() {
    let node = Node::start(&file(), &[]);
    for name in [
        "fixed-window",
        "sliding-window",
        "sliding-log",
        "token-bucket",
        "gcra",
        "leaky-bucket",
        "concurrency",
    ] {
        let ask = |user: &str, plan: &str| {
            let entries = [("limit", name), ("user", user), ("plan", plan)];
            left(&node.ask("edge", vec![descriptor(&entries)]))[0]
        };
        let free = [(); 3].map(|()| ask("ann", "free"));
        assert_eq!(free, [(true, 1), (true, 0), (false, 0)], "{name}");
        let pro = [(); 5].map(|()| ask("bob", "pro").0);
        assert_eq!(pro, [true, true, true, true, false], "{name}");
    }
}

#[test]
fn modes_and_penalties() {
    let node = Node::start(&file(), &[]);
    let ask =
        |limit: &str| node.ask("edge", vec![descriptor(&[("limit", limit), ("user", "ann")])]);
    for limit in ["off", "watched"] {
        let response = ask(limit);
        assert_eq!(response.overall_code, OK);
        assert!(response.statuses[0].current_limit.is_none(), "{limit}");
    }
    while ask("blocked").overall_code == OK {}
    let response = ask("blocked");
    assert_eq!(header(&response, "x-tollgate-source"), Some("blocked"));
    let wait: u64 = header(&response, "retry-after").unwrap().parse().unwrap();
    assert!(wait > 3_500, "{wait}");
}

#[test]
fn decisions_by_limits_of_callers_are_counted() {
    let node = Node::start("", &[]);
    let metric = |outcome: &str| {
        let stream = TcpStream::connect(node.running.address(Front::Admin).unwrap()).unwrap();
        let mut client = Client(stream);
        client.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
        let page = Page::prometheus(&client.answer().body).unwrap();
        page.value("tollgate_decisions_total", &[("limit", "override"), ("outcome", outcome)])
    };
    assert_eq!(metric("admitted"), None, "not before there is one");
    for _ in 0..3 {
        node.ask("edge", vec![own(user("ann"), 2, YEAR)]);
    }
    assert_eq!((metric("admitted"), metric("refused")), (Some(2.0), Some(1.0)));
}

/// A tier map looks up the value of a descriptor, in clear or by its hash.
#[test]
fn a_descriptor_has_the_tier_of_the_map() {
    let file = "
tiers: {default: free, by: descriptor.key, map: {key-1: pro, sha256:7c36b0a9dedde119c75165957c6c9c187e65df1ee5db87c4c58ad503ad88cbe3: pro}}
limits: [{name: l, key: [descriptor.key], rate: 1/365d, algorithm: gcra, tiers: {pro: 3/365d}}]
";
    let node = Node::start(file, &[]);
    let ask = |key: &str| left(&node.ask("edge", vec![descriptor(&[("key", key)])]))[0];
    assert_eq!([ask("key-1"), ask("key-2"), ask("key-3")], [(true, 2), (true, 2), (true, 0)]);
}

/// A descriptor charges the candidate of its limit. A peek does not, and no response shows the
/// candidate.
#[test]
fn candidates_are_counted() {
    let file = "limits: [{name: l, key: [descriptor.user], rate: 1/365d, algorithm: gcra, candidate: {rate: 3/365d}}]";
    let node = Node::start(file, &[]);
    let ask = |units| {
        let response = node.ask("edge", vec![hits(user("ann"), units)]);
        assert_eq!(response.statuses.len(), 1);
        left(&response)[0]
    };
    assert_eq!(
        [0, 1, 0, 1, 1, 1].map(ask),
        [(true, 1), (true, 0), (false, 0), (false, 0), (false, 0), (false, 0)]
    );
    let counts = node.running.node().gate.candidate_counts();
    let counts = &counts[0].1;
    assert_eq!((counts.same, counts.would_refuse, counts.would_admit, counts.keys), (2, 0, 2, 1));
}
