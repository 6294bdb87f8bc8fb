//! A flood on a refused key does not reach the store.

use super::Redis;
use std::sync::Arc;
use tollgate::engine::{GateBuffers, GateSetup};
use tollgate_server::Node;

#[test]
fn a_hundred_thousand_refusals_in_a_second_cost_two_calls_at_most() {
    let redis = Redis::start();
    let file = format!(
        "store: {{redis: {{url: '{}', time: caller, deadline: 30s}}}}\nlimits: [{{name: l, key: [user], rate: 3/h, algorithm: gcra, on_store_failure: closed}}]",
        redis.url()
    );
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    let setup = GateSetup::of(&compiled);
    let node = Arc::new(Node::new(compiled, setup).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Elapsed time is subtracted from the deadline, so the instant must come from the node's clock.
    let start_us = node.clock.now_us();
    let rules = node.gate.rules();
    let mut work = GateBuffers::default();
    let mut ask = |now_us: u64, cost: u64| {
        let mut facts = rules.facts(Default::default());
        facts.set("user", "a").unwrap();
        let verdict = runtime.block_on(node.gate.check(&rules, now_us, &facts, cost, &mut work));
        let allowed = verdict.allowed;
        work.recycle(verdict);
        allowed
    };
    assert!(ask(start_us, 3));
    let before = redis.scripts_run();
    for n in 0..100_000 {
        assert!(!ask(start_us + n * 10, 1), "{n}");
    }
    let calls = redis.scripts_run() - before;
    assert!((1..=2).contains(&calls), "{calls} calls");
    let hits = node.gate.counts()[0].1.deny_cache_hits;
    assert!(hits >= 99_998, "{hits}");
    // The cached refusal is too old by now. Of two hundred concurrent requests, one calls the
    // store.
    let (before, later_us) = (redis.scripts_run(), start_us + 5_000_000);
    let check = || async {
        let mut facts = rules.facts(Default::default());
        facts.set("user", "a").unwrap();
        node.gate.check(&rules, later_us, &facts, 1, &mut GateBuffers::default()).await.allowed
    };
    let all = futures_util::future::join_all(std::iter::repeat_with(check).take(200));
    assert_eq!(runtime.block_on(all), [false; 200]);
    assert_eq!(redis.scripts_run() - before, 1);
}
