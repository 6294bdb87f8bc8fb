//! Candidates have the outcomes of a second engine beside the first, and affect no other limit.

mod batches;
mod cluster;

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, facts, gate, rows, setup};
use crate::now;
use proptest::prelude::*;
use std::time::Duration;
use tollgate::MemoryStore;
use tollgate::engine::limit::Mode;
use tollgate::engine::{
    CandidateCounts, DenyCache, Gate, GateBuffers, ModeOverride, ReservationEnd, Verdict,
};
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{LeaseStore, RedisStore};
use tollgate_faults::redis::Redis;

/// A limit, its candidate, and the limit with the candidate's parameters.
const TRIALS: [[&str; 3]; 6] = [
    ["key: [user], rate: 3/min", "rate: 2/min", "key: [user], rate: 2/min"],
    [
        "key: [user], rate: 2/min, algorithm: gcra",
        "burst: 4",
        "key: [user], rate: 2/min, algorithm: gcra, burst: 4",
    ],
    [
        "key: [ip], rate: 4/min, algorithm: fixed-window",
        "algorithm: sliding-log, rate: 3/min",
        "key: [ip], rate: 3/min, algorithm: sliding-log",
    ],
    [
        "rate: 1/s, algorithm: token-bucket, burst: 3",
        "rate: 9/min, burst: 5",
        "rate: 9/min, algorithm: token-bucket, burst: 5",
    ],
    [
        "key: [user], rate: 3/min, algorithm: sliding-log, tiers: {pro: 5/min}",
        "rate: 6/min, tiers: {pro: 4/min}",
        "key: [user], rate: 6/min, algorithm: sliding-log, tiers: {pro: 4/min}",
    ],
    ["key: [ip], rate: 3/min, mode: shadow", "rate: 1/min", "key: [ip], rate: 1/min, mode: shadow"],
];

/// A request: microseconds since the previous one, user, address, plan, cost.
type TrialStep = (u64, usize, usize, usize, u64);

/// The files of the three engines: with candidates, with the candidates in place of the limits, and
/// without candidates.
fn files(chosen: &[usize]) -> [String; 3] {
    let file = |entry: &dyn Fn(&[&str; 3]) -> String| {
        let lines = chosen.iter().enumerate();
        lines.map(|(n, at)| format!("  - {{name: l{n}, {}}}\n", entry(&TRIALS[*at]))).collect()
    };
    [
        file(&|[limit, candidate, _]| format!("{limit}, candidate: {{{candidate}}}")),
        file(&|[_, _, replaced]| (*replaced).to_owned()),
        file(&|[limit, _, _]| (*limit).to_owned()),
    ]
}

async fn ask<S: LeaseStore>(
    gate: &Gate<S>,
    at_us: u64,
    step: &TrialStep,
) -> (bool, Vec<(String, bool, u64)>) {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    let (user, ip) = (format!("u{}", step.1), format!("10.0.0.{}", step.2));
    facts.set("user", &user).unwrap();
    facts.set("ip", &ip).unwrap();
    facts.set("plan", ["free", "pro"][step.3]).unwrap();
    let mut work = GateBuffers::default();
    let verdict = gate.check(&rules, at_us, &facts, step.4, &mut work).await;
    let owned = |(name, admitted, left): (&str, bool, u64)| (name.to_owned(), admitted, left);
    (verdict.allowed, rows(&verdict).into_iter().map(owned).collect())
}

/// Runs the three engines side by side, and compares after each request.
async fn compare<S: LeaseStore>(
    gates: [&Gate<S>; 3],
    limits: usize,
    steps: &[TrialStep],
) -> Result<(), TestCaseError> {
    let mut expected = vec![CandidateCounts::default(); limits];
    let mut at_us = NOW_US;
    for step in steps {
        at_us += step.0;
        compare_step(gates, at_us, step, &mut expected).await?;
    }
    compare_counts(gates, &expected)
}

/// Decides one request by the three engines. Adds the outcomes to those expected of each limit.
async fn compare_step<S: LeaseStore>(
    [tried, replaced, plain]: [&Gate<S>; 3],
    at_us: u64,
    step: &TrialStep,
    expected: &mut [CandidateCounts],
) -> Result<(), TestCaseError> {
    let have = ask(tried, at_us, step).await;
    prop_assert_eq!(&have, &ask(plain, at_us, step).await, "no answer shows candidates");
    let (_, other) = ask(replaced, at_us, step).await;
    prop_assert_eq!(have.1.len(), expected.len());
    for ((counts, own), candidate) in expected.iter_mut().zip(&have.1).zip(&other) {
        match (own.1, candidate.1) {
            (true, false) => counts.would_refuse += 1,
            (false, true) => counts.would_admit += 1,
            _ => counts.same += 1,
        }
    }
    Ok(())
}

fn compare_counts<S: LeaseStore>(
    [tried, _, plain]: [&Gate<S>; 3],
    expected: &[CandidateCounts],
) -> Result<(), TestCaseError> {
    let known = tried.candidate_counts();
    for (n, counts) in expected.iter().enumerate() {
        let own = known.iter().find(|(name, _)| **name == format!("l{n}")).unwrap().1;
        let figures = |it: &CandidateCounts| [it.same, it.would_refuse, it.would_admit];
        prop_assert_eq!(figures(&own), figures(counts), "l{}", n);
        prop_assert_eq!(own.keys == 0, counts.would_refuse + counts.would_admit == 0);
    }
    prop_assert_eq!(plain.candidate_counts().len(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn outcomes_are_those_of_two_engines(
        chosen in prop::collection::vec(0..TRIALS.len(), 1..4),
        steps in prop::collection::vec(
            (0_u64..20_000_000, 0..3_usize, 0..2_usize, 0..2_usize, prop_oneof![5 => Just(1_u64), 1 => 0_u64..5]),
            1..80,
        ),
    ) {
        let gates = files(&chosen).map(|file| Gate::new(setup(&file), MemoryStore::default()).unwrap());
        now(compare(gates.each_ref(), chosen.len(), &steps))?;
    }
}

/// Fixed steps, the same in every run.
fn fixed_steps(seed: u64, count: usize) -> Vec<TrialStep> {
    let mut state = seed;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut step = |_| {
        let index = |drawn: u64| drawn as usize;
        (draw(15_000_000), index(draw(3)), index(draw(2)), index(draw(2)), 1 + draw(6) / 5)
    };
    (0..count).map(&mut step).collect()
}

/// The Redis script charges candidates like the memory store.
#[tokio::test]
async fn outcomes_in_redis_are_those_of_two_engines() {
    let server = Redis::start();
    for (n, chosen) in [&[0, 2, 5][..], &[1], &[3, 4], &[4, 2]].into_iter().enumerate() {
        let mut engine = 0;
        let gates = files(chosen).map(|file| {
            let mut options = RedisOptions::default();
            options.deadline = Duration::from_secs(20);
            options.caller_time = true;
            options.prefix = format!("run-{n}-{engine}");
            engine += 1;
            let store = RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap();
            Gate::new(setup(&file), store).unwrap()
        });
        let steps = fixed_steps(n as u64 + 1, 60);
        let compared = compare(gates.each_ref(), chosen.len(), &steps).await;
        compared.unwrap_or_else(|error| panic!("{chosen:?}: {error}"));
    }
}

#[test]
fn a_limit_without_a_candidate_refuses_for_candidates_too() {
    let desk = gate(
        "  - {name: user, key: [user], rate: 9/h, candidate: {rate: 3/h}}\n  - {name: all, rate: 2/h}\n",
    );
    let facts = facts(&desk, &[("user", "1")]);
    let check = || {
        desk.gate.check(&desk.rules, NOW_US, &facts, 1, &mut GateBuffers::default()).now().allowed
    };
    assert_eq!([check(), check(), check(), check()], [true, true, false, false]);
    let explained = now(desk.gate.explain(&desk.rules, NOW_US, &facts, 1));
    let candidate = explained.limits[0].decisions[0].candidate.unwrap();
    assert_eq!(candidate.outcome.remaining, 1, "what `all` refused is not counted");
    assert_eq!(desk.gate.candidate_counts()[0].1.same, 4);
}

#[test]
fn a_candidate_counts_what_its_limit_refuses() {
    let limits = "  - {name: user, key: [user], rate: 1/h, candidate: {rate: 3/h}}\n";
    let plain = Gate::new(setup(limits), Faulty::default()).unwrap();
    let cached = Gate::new(setup(limits), Faulty::default()).unwrap();
    let cached = cached.with_deny_cache(DenyCache::new(1_000, Duration::from_secs(1)));
    for gate in [plain, cached] {
        for n in 0..5 {
            let rules = gate.rules();
            let mut facts = rules.facts(Default::default());
            facts.set("user", "1").unwrap();
            let mut work = GateBuffers::default();
            let verdict = now(gate.check(&rules, NOW_US, &facts, 1, &mut work));
            assert_eq!(verdict.allowed, n == 0);
        }
        let counts = gate.candidate_counts()[0].1;
        assert_eq!((counts.same, counts.would_refuse, counts.would_admit), (3, 0, 2));
        assert_eq!(counts.keys, 1);
        assert_eq!(gate.counts()[0].1.refused, 4, "each limit counts once");
    }
}

#[test]
fn a_block_and_a_switched_off_limit_compare_nothing() {
    let limits = "  - {name: user, key: [user], rate: 1/h, penalty: {after: 1, block: 2h}, candidate: {rate: 9/h}}\n";
    let desk = gate(limits);
    let ask = |at_us: u64| -> Verdict<'_> {
        let facts = facts(&desk, &[("user", "1")]);
        desk.gate.check(&desk.rules, at_us, &facts, 1, &mut GateBuffers::default()).now()
    };
    assert!(ask(NOW_US).allowed);
    for _ in 0..3 {
        assert!(!ask(NOW_US).allowed);
    }
    let counts = desk.gate.candidate_counts()[0].1;
    assert_eq!((counts.same, counts.would_admit), (4, 0), "a block refuses for both");
    desk.gate.set_overrides(vec![ModeOverride::new("user", Mode::Off)]);
    let rules = desk.gate.rules();
    let mut off = rules.facts(Default::default());
    off.set("user", "1").unwrap();
    assert!(desk.gate.check(&rules, NOW_US, &off, 1, &mut GateBuffers::default()).now().allowed);
    assert_eq!(desk.gate.candidate_counts()[0].1, counts);
}

#[test]
fn a_reservation_settles_the_candidate_too() {
    let desk = gate("  - {name: user, key: [user], rate: 10/h, candidate: {rate: 20/h}}\n");
    let facts = facts(&desk, &[("user", "1")]);
    let left = || {
        let explained = now(desk.gate.explain(&desk.rules, NOW_US, &facts, 1));
        let decision = &explained.limits[0].decisions[0];
        (decision.row.outcome.remaining, decision.candidate.unwrap().outcome.remaining)
    };
    let mut work = GateBuffers::default();
    let reserved = desk.gate.reserve(&desk.rules, NOW_US, "id", &facts, 5, None, &mut work).now();
    assert_eq!(reserved.unwrap().0.rows.len(), 1);
    assert_eq!(left(), (5, 15));
    let settled = desk.gate.end(NOW_US, "id", ReservationEnd::Settle(1)).now().unwrap();
    assert_eq!(settled.rows().count(), 1, "the candidate is not shown");
    assert_eq!(left(), (9, 19));
}
