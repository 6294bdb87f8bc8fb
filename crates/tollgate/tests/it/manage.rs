use crate::fixture::{NOW_US, check, facts, gate, setup};
use crate::now;
use std::time::Duration;
use tollgate::MemoryStore;
use tollgate::engine::{Gate, GateBuffers, Source};
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{LeaseStore, RedisStore};
use tollgate_faults::redis::Redis;

const SECOND: u64 = 1_000_000;
const LIMITS: &str = concat!(
    "  - {name: user, match: {path: /never}, key: [user], rate: 5/min, algorithm: gcra}\n",
    "  - {name: org, key: [org], rate: 5/min}\n",
    "  - {name: login, key: [user], rate: 1/min, algorithm: gcra, tiers: {slow: 1/h}, penalty: {after: 1, block: 10s, max: 10s}}\n",
);

#[test]
fn every_limit_of_the_key_is_shown_whatever_it_matches() {
    let desk = gate(LIMITS);
    check(&desk, &[("user", "a")], 1);
    check(&desk, &[("user", "a")], 1);
    let facts = facts(&desk, &[("user", "a")]);
    let inspected = now(desk.gate.inspect(&desk.rules, NOW_US + SECOND, &facts, None)).unwrap();
    let shown: Vec<_> = inspected
        .iter()
        .map(|one| (&*one.row.limit.name, one.row.outcome.remaining, one.blocked_until_us))
        .collect();
    assert_eq!(shown, [("user", 5, None), ("login", 0, Some(NOW_US + 10 * SECOND))]);
    let one = now(desk.gate.inspect(&desk.rules, NOW_US, &facts, Some("user"))).unwrap();
    assert_eq!(one.len(), 1);
}

#[test]
fn a_key_is_reset_in_every_tier() {
    let desk = gate(LIMITS);
    for plan in ["free", "slow"] {
        check(&desk, &[("user", "a"), ("plan", plan)], 1);
        assert!(!check(&desk, &[("user", "a"), ("plan", plan)], 1).allowed);
    }
    let facts = facts(&desk, &[("user", "a")]);
    assert_eq!(
        now(desk.gate.reset(&desk.rules, NOW_US, &facts, Some("login"))).unwrap(),
        ["login"]
    );
    for plan in ["free", "slow"] {
        assert!(check(&desk, &[("user", "a"), ("plan", plan)], 1).allowed);
    }
}

#[test]
fn a_key_is_blocked_in_every_tier_until_told_otherwise() {
    let desk = gate(LIMITS);
    let facts = facts(&desk, &[("user", "a")]);
    let block = |until_us| {
        now(desk.gate.block(&desk.rules, NOW_US, &facts, Some("login"), until_us)).unwrap()
    };
    assert_eq!(block(Some(NOW_US + SECOND)), ["login"]);
    for plan in ["free", "slow"] {
        let verdict = check(&desk, &[("user", "a"), ("plan", plan)], 1);
        assert_eq!((verdict.source, verdict.retry_after_us), (Source::Blocked, Some(SECOND)));
    }
    assert!(check(&desk, &[("user", "b")], 1).allowed);
    block(None);
    assert!(check(&desk, &[("user", "a")], 1).allowed);
}

#[test]
fn what_was_taken_before_a_reset_is_not_given_back_after_it() {
    use tollgate::engine::ReservationEnd;
    for algorithm in ["fixed-window", "sliding-window", "sliding-log", "gcra", "token-bucket"] {
        let limits = format!("  - {{name: l, key: [user], rate: 10/h, algorithm: {algorithm}}}\n");
        // A reset waits for the store, so another thread's charge may have a later instant.
        for taken_us in [NOW_US, NOW_US + 50_000] {
            let desk = gate(&limits);
            let facts = facts(&desk, &[("user", "a")]);
            let mut work = GateBuffers::default();
            let (gate, rules) = (&desk.gate, &desk.rules);
            gate.reserve(rules, taken_us, "r", &facts, 6, None, &mut work).now().unwrap();
            now(gate.reset(rules, NOW_US, &facts, None)).unwrap();
            assert!(check(&desk, &[("user", "a")], 7).allowed);
            gate.end(taken_us, "r", ReservationEnd::Cancel).now().unwrap();
            let peeked = gate.peek(rules, taken_us, &facts, 1, &mut work).now();
            assert_eq!(peeked.rows[0].outcome.remaining, 3, "{algorithm} {taken_us}");
        }
    }
}

/// The slots of a key that was reset are freed at once, and units after a tenth of a second.
#[test]
fn what_is_taken_after_a_reset_is_given_back() {
    use tollgate::engine::ReservationEnd;
    for (limit, after_us) in [
        ("algorithm: concurrency, rate: 2", 1),
        ("algorithm: sliding-log, rate: 2/h", 1),
        ("algorithm: gcra, rate: 2/h", 100_001),
    ] {
        let desk = gate(&format!("  - {{name: l, key: [user], {limit}}}\n"));
        let facts = facts(&desk, &[("user", "a")]);
        let mut work = GateBuffers::default();
        let (gate, rules, taken_us) = (&desk.gate, &desk.rules, NOW_US + after_us);
        assert!(check(&desk, &[("user", "a")], 2).allowed);
        now(gate.reset(rules, NOW_US, &facts, None)).unwrap();
        gate.reserve(rules, taken_us, "r", &facts, 2, None, &mut work).now().unwrap();
        gate.end(taken_us, "r", ReservationEnd::Cancel).now().unwrap();
        let peeked = gate.peek(rules, taken_us, &facts, 1, &mut work).now();
        assert_eq!(peeked.rows[0].outcome.remaining, 2, "{limit}");
    }
}

fn redis(server: &Redis, prefix: &str) -> RedisStore {
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_secs(20);
    options.caller_time = true;
    options.prefix = prefix.to_owned();
    RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap()
}

/// The remaining units of each limit and of its candidate, before and after a reset.
async fn left_around_reset<S: LeaseStore>(store: S, named: Option<&str>) -> [[(u64, u64); 2]; 2] {
    let limits = "  - {name: a, key: [user], rate: 9/h, candidate: {rate: 3/h}}\n  \
                  - {name: b, key: [user], rate: 9/h, candidate: {rate: 20/h, algorithm: gcra}}\n";
    let gate = Gate::new(setup(limits), store).unwrap();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "1").unwrap();
    for _ in 0..5 {
        gate.check(&rules, NOW_US, &facts, 1, &mut GateBuffers::default()).await;
    }
    let left = async || {
        let explained = gate.explain(&rules, NOW_US, &facts, 1).await;
        [0, 1].map(|at| {
            let decision = &explained.limits[at].decisions[0];
            (decision.row.outcome.remaining, decision.candidate.unwrap().outcome.remaining)
        })
    };
    let before = left().await;
    let done = gate.reset(&rules, NOW_US, &facts, named).await.unwrap();
    assert_eq!(done, if named.is_some() { vec!["a"] } else { vec!["a", "b"] });
    [before, left().await]
}

#[tokio::test]
async fn a_reset_reaches_the_candidates_of_the_limits() {
    let server = Redis::start();
    // The candidate of `a` refuses two of five. No other candidate is charged for those.
    let used = [(4, 0), (4, 17)];
    for (named, after) in [(None, [(9, 3), (9, 20)]), (Some("a"), [(9, 3), (4, 17)])] {
        let memory = left_around_reset(MemoryStore::default(), named).await;
        assert_eq!(memory, [used, after], "memory, {named:?}");
        let store = redis(&server, named.unwrap_or("all"));
        assert_eq!(left_around_reset(store, named).await, [used, after], "Redis, {named:?}");
    }
}

/// The used units of a key under each limit, after all limits became smaller.
async fn used_beyond_the_limit<S: LeaseStore>(store: S) -> Vec<(String, u64, u64)> {
    let limits = |count: u64| {
        let algorithms = ["fixed-window", "sliding-window", "sliding-log", "concurrency", "gcra"];
        let entry = |algorithm: &str| {
            let rate = if algorithm == "concurrency" { "" } else { "/h" };
            format!(
                "  - {{name: {algorithm}, key: [user], rate: {count}{rate}, algorithm: {algorithm}}}\n"
            )
        };
        let month = format!(
            "  - {{name: month, key: [user], rate: {count}/month, algorithm: fixed-window}}\n"
        );
        algorithms.map(entry).concat() + &month
    };
    let gate = Gate::new(setup(&limits(10)), store).unwrap();
    for (count, cost) in [(10, 9), (5, 0)] {
        gate.replace(setup(&limits(count))).unwrap();
        let rules = gate.rules();
        let mut facts = rules.facts(Default::default());
        facts.set("user", "1").unwrap();
        assert!(
            gate.check(&rules, NOW_US, &facts, cost, &mut GateBuffers::default()).await.allowed
        );
    }
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "1").unwrap();
    let explained = gate.explain(&rules, NOW_US, &facts, 1).await;
    gate.block(&rules, NOW_US, &facts, Some("sliding-log"), Some(NOW_US + SECOND)).await.unwrap();
    let inspected = gate.inspect(&rules, NOW_US, &facts, None).await.unwrap();
    let both = inspected.iter().zip(&explained.limits);
    both.map(|(one, other)| (one.row.limit.name.to_string(), one.used, other.decisions[0].used))
        .collect()
}

#[tokio::test]
async fn units_beyond_a_limit_that_became_smaller_are_shown() {
    let server = Redis::start();
    let expected = [
        ("fixed-window", 9),
        ("sliding-window", 9),
        ("sliding-log", 9),
        ("concurrency", 9),
        // The state of a bucket is a time. In a smaller bucket, that time is this many units.
        ("gcra", 5),
        ("month", 9),
    ]
    .map(|(name, used)| (name.to_owned(), used, used));
    assert_eq!(used_beyond_the_limit(MemoryStore::default()).await, expected);
    assert_eq!(used_beyond_the_limit(redis(&server, "used")).await, expected);
}
