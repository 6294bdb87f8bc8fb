//! An explanation has the verdict of a peek, limit by limit, and charges nothing.

use crate::fixture::{GateFixture, NOW_US, facts, gate};
use crate::now;
use proptest::prelude::*;
use std::fmt::Debug;
use std::time::Duration;
use tollgate::engine::policy::Applicability;
use tollgate::engine::{Explanation, Gate, GateBuffers, GateSetup, Row, policy};
use tollgate::store::RedisStore;
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate_core::LimitState;
use tollgate_faults::redis::Redis;

/// Entries of a policy: all algorithms, tiers, costs, modes, penalties, debts and keys.
const ENTRIES: [&str; 10] = [
    "{key: [user], rate: 3/min}",
    "{match: {path: '/a/**'}, key: [user], rate: 2/min, algorithm: gcra, tiers: {pro: 5/min}}",
    "{match: {method: POST, not: {path: /a/free}}, rate: 4/h, algorithm: fixed-window}",
    "{key: [ip], rate: 2/s, algorithm: token-bucket, burst: 3, on_missing: refuse}",
    "{key: [user, ip], rate: 3/min, algorithm: sliding-log, on_missing: share}",
    "{key: {first_of: [user, ip]}, rate: 2/min, algorithm: leaky-bucket, queue: 2}",
    "{match: {path: /a/x}, key: [user], rate: 3/min, mode: shadow}",
    "{match: {path: '/a/*'}, key: [user], rate: 3/min, penalty: {after: 2, block: 1h}}",
    "{match: {path: /b}, key: [user], rate: 6/min, cost: [{match: {method: POST}, units: 4}]}",
    "{match: {method: [GET, PUT]}, key: [user], rate: 3/min, debt: true}",
];

/// A request: microseconds since the previous one, path, method, user, address, plan, cost.
type ExplainStep = (u64, usize, usize, usize, usize, usize, u64);

const PATHS: [&str; 5] = ["", "/a/x", "/a/free", "/b", "/c"];
const METHODS: [&str; 3] = ["GET", "POST", "PUT"];
const USERS: [&str; 3] = ["", "1", "2"];
const ADDRESSES: [&str; 3] = ["", "10.0.0.1", "2001:db8::1"];
const PLANS: [&str; 3] = ["", "pro", "none"];

fn attributes(step: &ExplainStep) -> [(&'static str, &'static str); 5] {
    [
        ("path", PATHS[step.1]),
        ("method", METHODS[step.2]),
        ("user", USERS[step.3]),
        ("ip", ADDRESSES[step.4]),
        ("plan", PLANS[step.5]),
    ]
}

fn shown(row: &Row<'_>) -> impl Debug + PartialEq + use<> {
    (row.limit.name.clone(), row.outcome, row.source, row.blocked, row.unverified)
}

/// The explanation has the result of a peek, and every row of the peek is a decision of its limit.
fn compare(desk: &GateFixture, at_us: u64, step: &ExplainStep) -> Result<(), TestCaseError> {
    let facts = facts(desk, &attributes(step));
    let mut work = GateBuffers::default();
    let peeked = desk.gate.peek(&desk.rules, at_us, &facts, step.6, &mut work).now();
    let explained = now(desk.gate.explain(&desk.rules, at_us, &facts, step.6));
    let verdict = &explained.verdict;
    prop_assert_eq!(verdict.allowed, peeked.allowed);
    prop_assert_eq!(verdict.retry_after_us, peeked.retry_after_us);
    prop_assert_eq!((verdict.delay_us, verdict.source), (peeked.delay_us, peeked.source));
    let decisions: Vec<_> = explained.limits.iter().flat_map(|one| &one.decisions).collect();
    let rows: Vec<_> = decisions.iter().map(|one| shown(&one.row)).collect();
    prop_assert_eq!(rows, peeked.rows.iter().map(shown).collect::<Vec<_>>());
    for one in &explained.limits {
        let applies = one.applicability == Applicability::Applies;
        prop_assert_eq!(applies, !one.decisions.is_empty(), "{:?}", one);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn an_explanation_is_the_peek(
        chosen in prop::collection::vec(0..ENTRIES.len(), 1..5),
        steps in prop::collection::vec(
            (0_u64..30_000_000, 0..5_usize, 0..3_usize, 0..3_usize, 0..3_usize, 0..3_usize, prop_oneof![4 => Just(1_u64), 1 => 0_u64..7]),
            1..40,
        ),
    ) {
        let entry = |(n, at): (usize, &usize)| ENTRIES[*at].replacen('{', &format!("  - {{name: l{n}, "), 1);
        let limits: Vec<String> = chosen.iter().enumerate().map(entry).collect();
        let desk = gate(&limits.join("\n"));
        let mut at_us = NOW_US;
        for step in &steps {
            at_us += step.0;
            compare(&desk, at_us, step)?;
            let facts = facts(&desk, &attributes(step));
            let mut work = GateBuffers::default();
            let _ = desk.gate.check(&desk.rules, at_us, &facts, step.6, &mut work).now();
        }
    }
}

fn state(explained: &Explanation<'_>) -> Option<LimitState> {
    explained.limits[0].decisions[0].state.clone()
}

#[test]
fn nothing_is_charged_and_the_state_is_that_before_the_request() {
    let desk = gate("  - {name: user, key: [user], rate: 3/min}");
    let facts = facts(&desk, &[("user", "42")]);
    let explain = || now(desk.gate.explain(&desk.rules, NOW_US, &facts, 1));
    for used in 0..3 {
        for _ in 0..2 {
            let explained = explain();
            assert!(explained.verdict.allowed);
            assert_eq!(explained.verdict.rows[0].outcome.remaining, 3 - used);
            let Some(LimitState::SlidingWindow(window)) = state(&explained) else { panic!() };
            assert_eq!(window.current, used);
        }
        let _ = desk.gate.check(&desk.rules, NOW_US, &facts, 1, &mut GateBuffers::default()).now();
    }
    assert!(!explain().verdict.allowed);
    assert_eq!(desk.gate.counts()[0].1.admitted, 3, "explanations are not counted");
}

/// Operators see the same states in Redis and in memory.
#[tokio::test]
async fn redis_tells_the_states_that_memory_does() {
    let server = Redis::start();
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_secs(20);
    options.caller_time = true;
    let entries = ENTRIES[..6].iter().enumerate();
    let entries = entries.map(|(n, one)| one.replacen('{', &format!("  - {{name: l{n}, "), 1));
    let text = format!("limits:\n{}", entries.collect::<Vec<_>>().join("\n"));
    let setup = || GateSetup::of(&policy::compile(text.as_bytes()).unwrap());
    let store = RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap();
    let shared = Gate::new(setup(), store).unwrap();
    let local = Gate::new(setup(), tollgate::MemoryStore::default()).unwrap();
    let given = [("path", "/a/x"), ("method", "POST"), ("user", "1"), ("ip", "10.0.0.1")];
    for n in 0..4 {
        let (rules, other) = (shared.rules(), local.rules());
        let mut of_shared = rules.facts(Default::default());
        let mut of_local = other.facts(Default::default());
        for (name, value) in given {
            of_shared.set(name, value).unwrap();
            of_local.set(name, value).unwrap();
        }
        let at_us = NOW_US + n * 7_000_000;
        let have = shared.explain(&rules, at_us, &of_shared, 1).await;
        let want = local.explain(&other, at_us, &of_local, 1).await;
        let states = |one: &Explanation<'_>| {
            let decisions = one.limits.iter().flat_map(|limit| &limit.decisions);
            decisions.map(|one| (one.row.outcome, one.state.clone())).collect::<Vec<_>>()
        };
        let (have, want) = (states(&have), states(&want));
        assert_eq!(have.len(), 6);
        for (have, want) in have.iter().zip(&want) {
            assert_eq!(have.0, want.0, "{n}");
            let is_same = match (&have.1, &want.1) {
                // Redis does not send logs, which may be long.
                (None, Some(LimitState::ExpiryLog(_))) | (None, Some(LimitState::New)) => true,
                // A new key has no state in Redis, and the state of an unused key in memory.
                (Some(LimitState::New), Some(_)) => have.0.remaining == have.0.limit,
                (have, want) => have == want,
            };
            assert!(is_same, "{n}: {have:?} {want:?}");
        }
        let (mut work, mut other_work) = (GateBuffers::default(), GateBuffers::default());
        let _ = shared.check(&rules, at_us, &of_shared, 1, &mut work).await;
        let _ = local.check(&other, at_us, &of_local, 1, &mut other_work).await;
    }
}
