//! A node with a deny cache answers like a node without one, except for the source.

use super::Redis;
use serde_json::Value;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tollgate::engine::{DescriptorMode, GateBuffers, GateSetup, MultiCheck};
use tollgate_core::header::{HeaderLines, Profile};
use tollgate_server::Node;
use tollgate_server::front::http::encode;
use tollgate_tower::problem_of;

const POLICIES: [&str; 4] = [
    "limits: [{name: user, key: [user], rate: 2/h}, {name: ip, key: [ip], rate: 50/h, algorithm: gcra}, {name: seen, rate: 1/h, mode: shadow}]",
    "limits: [{name: user, key: [user], rate: 2/h, algorithm: gcra, disclose: false}, {name: ip, key: [ip], rate: 3/h, algorithm: token-bucket}]",
    "limits: [{name: user, key: [user], rate: 2/h, algorithm: sliding-log, penalty: {after: 3, block: 2h, max: 2h}}, {name: ip, key: [ip], rate: 9/h, algorithm: fixed-window}]",
    "limits: [{name: user, key: [user], rate: 2/h, algorithm: leaky-bucket, burst: 2}, {name: slots, key: [ip], rate: 9, algorithm: concurrency}]",
];

fn node(redis: &Redis, number: usize, policy: &str, cache: &str) -> Arc<Node> {
    let prefix = format!("tg{number}{}", cache.len());
    let file = format!(
        "store: {{redis: {{url: '{}', prefix: {prefix}, time: caller, deadline: 30s, {cache}}}}}\n{policy}",
        redis.url()
    );
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    let setup = GateSetup::of(&compiled);
    Arc::new(Node::new(compiled, setup).unwrap())
}

/// The whole answer without its source: the check API's JSON, the headers of all profiles, and the
/// type of the problem.
fn told(runtime: &Runtime, node: &Node, at_us: u64, (user, ip, cost): (&str, &str, u64)) -> Value {
    let rules = node.gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", user).unwrap();
    facts.set("ip", ip).unwrap();
    let mut work = GateBuffers::default();
    let verdict = runtime.block_on(node.gate.check(&rules, at_us, &facts, cost, &mut work));
    let mut json = Vec::new();
    encode::verdict(&mut json, &verdict);
    json.push(b'}');
    let mut all: Value = serde_json::from_slice(&json).unwrap();
    all.as_object_mut().unwrap().remove("source");
    for row in all["limits"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("source");
    }
    for profile in Profile::ALL {
        let mut fields = HeaderLines::new();
        encode::render_headers(&verdict, &[profile], at_us, &mut fields);
        for (name, value) in fields.iter().filter(|(name, _)| *name != "X-Tollgate-Source") {
            all[format!("{} {name}", profile.name())] = value.into();
        }
    }
    all["problem"] = format!("{:?}", problem_of(&verdict)).into();
    all
}

/// The same for each descriptor of an Envoy call.
fn told_parts(runtime: &Runtime, node: &Node, at_us: u64, users: &[&str]) -> String {
    let rules = node.gate.rules();
    let (mut parts, mut work) = (MultiCheck::default(), GateBuffers::default());
    for user in users {
        parts.begin();
        let mut facts = rules.facts(Default::default());
        facts.set("user", user).unwrap();
        facts.set("ip", "10.9.9.9").unwrap();
        parts.add(&rules, &facts, 1, DescriptorMode::Enforce);
    }
    let partial = runtime.block_on(node.gate.check_multi(&rules, at_us, &parts, &mut work));
    let rows = |part| partial.rows(part).map(|row| (&*row.limit.name, row.outcome, row.blocked));
    let all: Vec<Vec<_>> = (0..users.len()).map(|part| rows(part).collect()).collect();
    format!("{} {all:?}", partial.verdict.allowed)
}

#[test]
fn the_deny_cache_changes_nothing_but_the_source() {
    let redis = Redis::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (number, policy) in POLICIES.into_iter().enumerate() {
        let plain = node(&redis, number, policy, "deny_cache: {entries: 0}");
        let cached = node(&redis, number, policy, "deny_cache: {entries: 1000}");
        let start_us = plain.clock.now_us();
        let requests = [("a", "10.0.0.1", 1), ("a", "10.0.0.2", 1), ("b", "10.0.0.1", 1)];
        let wide = [("a", "10.0.0.1", 2), ("a", "10.0.0.1", 99), ("a", "10.0.0.1", 0)];
        // All units are taken first: later charges would make slightly older rows differ.
        for asked in [requests[0], requests[0], ("b", "10.0.0.2", 1), ("b", "10.0.0.2", 1)] {
            let want = told(&runtime, &plain, start_us, asked);
            assert_eq!(want, told(&runtime, &cached, start_us, asked), "{policy}: {asked:?}");
            assert_eq!(want["allowed"], true, "{policy}: {asked:?}");
        }
        for round in 0..6 {
            for asked in requests.into_iter().chain(wide) {
                let want = told(&runtime, &plain, start_us, asked);
                let have = told(&runtime, &cached, start_us, asked);
                assert_eq!(want, have, "{policy}: {asked:?} in round {round}");
            }
            let users = ["a", "c"];
            let want = told_parts(&runtime, &plain, start_us, &users);
            assert_eq!(want, told_parts(&runtime, &cached, start_us, &users), "{policy}: {round}");
        }
        let hits: u64 = cached.gate.counts().iter().map(|(_, of)| of.deny_cache_hits).sum();
        assert!(hits > 20, "{policy}: {hits} of 42 were remembered");
        assert_eq!(plain.gate.counts().iter().map(|(_, of)| of.deny_cache_hits).sum::<u64>(), 0);
    }
}

/// Rows that this node has not cached are requested from the store, up to a bound.
#[test]
fn a_flood_with_keys_that_nobody_knows_reaches_redis_a_few_times() {
    let redis = Redis::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let policy = "limits: [{name: ip, key: [ip], rate: 2/h}, {name: user, key: [user], rate: 9/h}]";
    let cached = node(&redis, 9, policy, "deny_cache: {entries: 1000}");
    let start_us = cached.clock.now_us();
    let ask = |n: u64| {
        let user = format!("user-{n}");
        told(&runtime, &cached, start_us + n * 100, (&user, "10.0.0.1", 1))["allowed"].clone()
    };
    assert!((0..2).all(|n| ask(n) == true));
    let before = redis.scripts_run();
    assert!((2..5_000).all(|n| ask(n) == false));
    assert!(redis.scripts_run() - before <= 18, "{}", redis.scripts_run() - before);
}
