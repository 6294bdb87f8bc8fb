//! TG113 is correct: a limit that it reports never refuses a request that the other limit admits.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use tollgate_core::{Algorithm, Intent, LimitState};
use tollgate_policy::limit::CostRule;
use tollgate_policy::{compile, lint};

/// One limit without its name.
fn limit(algorithm: &'static str) -> impl Strategy<Value = String> {
    let period = prop::sample::select(vec!["500ms", "1s", "2s", "3s"]);
    (0..6u64, period, 1..8u64, 0..3u64, 1..4u64, any::<bool>()).prop_map(
        move |(count, period, burst, queue, cost, wide)| {
            let rate = match algorithm {
                "concurrency" => format!("{count}, ttl: {period}"),
                "fixed-window" | "sliding-window" | "sliding-log" => format!("{count}/{period}"),
                "leaky-bucket" => format!("{count}/{period}, burst: {burst}, queue: {queue}"),
                _ => format!("{count}/{period}, burst: {burst}"),
            };
            let path = if wide { "/**" } else { "/a" };
            format!("algorithm: {algorithm}, match: {{path: {path}}}, rate: {rate}, cost: {cost}")
        },
    )
}

fn pair() -> impl Strategy<Value = (String, String)> {
    let same = prop::sample::select(vec![
        ("fixed-window", "fixed-window"),
        ("sliding-window", "sliding-window"),
        ("sliding-log", "sliding-log"),
        ("leaky-bucket", "leaky-bucket"),
        ("concurrency", "concurrency"),
        ("token-bucket", "gcra"),
        ("gcra", "token-bucket"),
        ("gcra", "gcra"),
    ]);
    same.prop_flat_map(|(a, b)| (limit(a), limit(b)))
}

/// A request: microseconds since the previous one, its cost, and whether it is for /a.
fn request() -> impl Strategy<Value = Request> {
    let gap = prop_oneof![Just(0), 1..10u64, 1..800_000u64, Just(500_000), Just(1_000_000)];
    (gap, 1..3u64, prop::bool::weighted(0.7))
}

type Request = (u64, u64, bool);

/// Checks the claim for one pair, if the lint reports it. Returns whether it does.
fn holds(first: &str, second: &str, start: u64, requests: &[Request]) -> bool {
    let file = format!("limits:\n- {{name: first, {first}}}\n- {{name: second, {second}}}\n");
    let compiled = compile(file.as_bytes()).unwrap();
    let findings = lint(&compiled);
    let Some(claim) = findings.iter().find(|warning| warning.code == "TG113") else { return false };
    let shadowed = claim.line as usize - 2;
    let mut states = [LimitState::default(), LimitState::default()];
    let mut now_us = 1_700_000_000_000_000 + start;
    for &(gap_us, cost, is_a) in requests {
        now_us += gap_us;
        let applies = |index: usize| is_a || file.lines().nth(index + 1).unwrap().contains("/**");
        let charge = |index: usize| {
            let limit = &compiled.limits[index].0;
            let CostRule::Fixed(each) = limit.cost else { unreachable!() };
            (limit.params.unwrap(), each * cost)
        };
        let admits = |index: usize, state: &LimitState| {
            let (params, cost) = charge(index);
            !applies(index) || params.decide(state, now_us, cost, Intent::Take).admitted
        };
        let [first, second] = [admits(0, &states[0]), admits(1, &states[1])];
        let (ours, theirs) = if shadowed == 0 { (first, second) } else { (second, first) };
        assert!(ours || !theirs, "line {} refuses alone at {now_us}:\n{file}", shadowed + 2);
        for index in (0..2).filter(|index| ours && theirs && applies(*index)) {
            let (params, cost) = charge(index);
            params.charge(&mut states[index], now_us, cost);
        }
    }
    true
}

#[test]
fn a_shadowed_limit_never_decides() {
    let claims = Cell::new(0);
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    let cases = (pair(), 0..4_000_000u64, prop::collection::vec(request(), 1..40));
    let result = TestRunner::new(config).run(&cases, |((first, second), start, requests)| {
        claims.set(claims.get() + u32::from(holds(&first, &second, start, &requests)));
        Ok(())
    });
    result.unwrap();
    assert!(claims.get() >= 300, "only {} pairs were claimed to be shadowed", claims.get());
}
