//! The deny cache answers with the rows that the store would have returned.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use proptest::prelude::*;
use std::time::Duration;
use tollgate::engine::{DenyCache, Gate, GateBuffers, Source};
use tollgate_core::Outcome;

const SECOND: u64 = 1_000_000;

/// A request: microseconds since the previous one, user, address, cost, and whether it is a peek.
type Step = (u64, u8, u8, u64, bool);

/// One row: limit, key, outcome, blocked.
type Seen = (String, u8, Outcome, bool);

#[derive(Debug)]
struct Answered {
    allowed: bool,
    retry_after_us: Option<u64>,
    source: Source,
    rows: Vec<Seen>,
    calls: u64,
}

fn gates(limits: &str) -> [Gate<Faulty>; 2] {
    let gate = || Gate::new(setup(limits), Faulty::default()).unwrap();
    [gate(), gate().with_deny_cache(DenyCache::new(1_000, Duration::from_secs(1)))]
}

fn ask(gate: &Gate<Faulty>, at_us: u64, (_, user, ip, cost, peek): Step) -> Answered {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    let (user_name, ip_name) = (format!("u{user}"), format!("10.0.0.{ip}"));
    facts.set("user", &user_name).unwrap();
    facts.set("ip", &ip_name).unwrap();
    let (before, mut work) = (gate.store().calls(), GateBuffers::default());
    let verdict = if peek {
        now(gate.peek(&rules, at_us, &facts, cost, &mut work))
    } else {
        now(gate.check(&rules, at_us, &facts, cost, &mut work))
    };
    let seen = |row: &tollgate::engine::Row<'_>| {
        let key = if row.limit.name.starts_with("ip") { 100 + ip } else { user };
        (row.limit.name.to_string(), key, row.outcome, row.blocked)
    };
    Answered {
        allowed: verdict.allowed,
        retry_after_us: verdict.retry_after_us,
        source: verdict.source,
        rows: verdict.rows.iter().map(seen).collect(),
        calls: gate.store().calls() - before,
    }
}

// Blocks last longer than the waits of their limits. Otherwise a cached refusal could hide the end
// of a block for `max_age`, and that refusal is not counted.
const MIXED: &[&str] = &[
    "  - {name: user, key: [user], rate: 6/min}\n  - {name: ip, key: [ip], rate: 4/min, algorithm: gcra}\n",
    "  - {name: user, key: [user], rate: 9/min, algorithm: fixed-window}\n  - {name: ip, key: [ip], rate: 4/min, algorithm: sliding-log}\n  - {name: ip-seen, key: [ip], rate: 3/min, mode: shadow}\n",
    "  - {name: user, key: [user], rate: 5/min, penalty: {after: 2, block: 3m, max: 1h}}\n  - {name: ip, key: [ip], rate: 4/min, algorithm: token-bucket}\n",
    "  - {name: slots, key: [user], algorithm: concurrency, rate: 9, ttl: 20s}\n  - {name: ip, key: [ip], rate: 3/min, algorithm: fixed-window, disclose: false}\n",
    "  - {name: user, key: [user], rate: 3/min, algorithm: leaky-bucket, burst: 3}\n  - {name: ip, key: [ip], rate: 5/min, algorithm: fixed-window, penalty: {after: 1, block: 2m, max: 1h}}\n",
];

/// Whether the store returned this row for this key less than `max_age` ago, with durations that
/// have run since.
fn was_answered(history: &[(u64, Seen, u64)], at_us: u64, row: &Seen, cost: u64) -> bool {
    history.iter().any(|(then_us, (name, key, then, blocked), then_cost)| {
        let age_us = at_us - then_us;
        let (name_is, key_is, now, blocked_is) = (row.0 == *name, row.1 == *key, row.2, row.3);
        let left = |us: u64| us.saturating_sub(age_us);
        // A refusal may answer another cost than the one that it was learnt for: `remaining` shows
        // which costs are admitted.
        let waits = if *then_cost == cost && !then.admitted {
            now.retry_after_us == then.retry_after_us.map(left)
        } else {
            *blocked || now.admitted == (cost <= then.remaining)
        };
        let same = now.remaining == then.remaining
            && now.reset_after_us == left(then.reset_after_us)
            && now.more_after_us == then.more_after_us.map(|us| left(us).max(1));
        let reset = then.reset_after_us <= age_us && now == Outcome::admitting(now.limit);
        let same = (same && waits && *blocked == blocked_is) || reset;
        name_is && key_is && age_us < SECOND && now.limit == then.limit && same
    })
}

fn compare(limits: &str, steps: &[Step]) -> Result<(), TestCaseError> {
    let [plain, cached] = gates(limits);
    let (mut at_us, mut history, mut hits) = (NOW_US, Vec::new(), 0);
    for &step in steps {
        at_us += step.0;
        let (want, have) = (ask(&plain, at_us, step), ask(&cached, at_us, step));
        let names = |answered: &Answered| {
            let name = |seen: &Seen| (seen.0.clone(), seen.2.limit);
            answered.rows.iter().map(name).collect::<Vec<_>>()
        };
        prop_assert_eq!(want.allowed, have.allowed, "{:?} {:?} {:?}", step, &want, &have);
        prop_assert_eq!(names(&want), names(&have), "{:?} {:?} {:?}", step, &want, &have);
        history.extend(want.rows.iter().map(|row| (at_us, row.clone(), step.3)));
        match have.calls {
            0 => {
                prop_assert_eq!(have.source, Source::DenyCache);
                hits += 1;
                for row in &have.rows {
                    prop_assert!(
                        was_answered(&history, at_us, row, step.3),
                        "{:?} {:?} {:?} {:?}",
                        step,
                        row,
                        &want,
                        &have
                    );
                }
            }
            _ => prop_assert_eq!(format!("{:?}", want.rows), format!("{:?}", have.rows)),
        }
        prop_assert!(have.retry_after_us != Some(0) || have.allowed);
    }
    prop_assert!(hits <= steps.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn the_rows_are_those_of_the_store_at_most_max_age_ago(
        limits in 0..MIXED.len(),
        steps in prop::collection::vec(
            (0_u64..400_000, 0_u8..2, 0_u8..2, prop_oneof![4 => Just(1_u64), 1 => 0_u64..7], prop::bool::weighted(0.1)),
            1..60,
        ),
    ) {
        compare(MIXED[limits], &steps)?;
    }
}

/// Where the limit's own wait outlasts a block, each cost has its own wait, reset and `t`.
#[test]
fn a_blocked_keys_reset_depends_on_the_cost() {
    let limits = "  - {name: user, key: [user], rate: 1/h, algorithm: gcra, penalty: {after: 1, block: 10m}}\n";
    let [plain, cached] = gates(limits);
    let costs = [(1, 1), (1, 1), (1, 0), (0, 1), (1, 0), (0, 0), (5, 1), (0, 0), (1, 0), (5, 0)];
    for (n, (cost, calls)) in (0..).zip(costs) {
        let (step, at_us) = ((0, 0, 0, cost, false), NOW_US + n * 10_000);
        let (want, have) = (ask(&plain, at_us, step), ask(&cached, at_us, step));
        assert_eq!(format!("{:?}", want.rows), format!("{:?}", have.rows), "{n}: cost {cost}");
        assert_eq!(want.retry_after_us, have.retry_after_us, "{n}");
        assert_eq!(have.calls, calls, "{n}: cost {cost}");
    }
}

#[test]
fn limits_that_admit_stay_in_the_answer() {
    let limits = "  - {name: user, key: [user], rate: 1/h, algorithm: gcra}\n  - {name: ip, key: [ip], rate: 9/h, algorithm: fixed-window}\n  - {name: ip-seen, key: [ip], rate: 1/h, mode: shadow}\n";
    let [plain, cached] = gates(limits);
    let step = (0, 0, 0, 1, false);
    for n in 0..4 {
        let (want, have) = (ask(&plain, NOW_US, step), ask(&cached, NOW_US, step));
        assert_eq!(format!("{:?}", want.rows), format!("{:?}", have.rows), "{n}");
        assert_eq!(want.retry_after_us, have.retry_after_us);
        assert_eq!(have.calls, u64::from(n < 2), "{n}");
    }
    let figures = |gate: &Gate<Faulty>| {
        let counts = gate.counts();
        counts
            .iter()
            .map(|(_, of)| (of.admitted, of.refused, of.shadow_refused))
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(&plain), [(4, 0, 0), (1, 0, 3), (1, 3, 0)]);
    assert_eq!(figures(&cached), [(4, 0, 0), (1, 0, 1), (1, 3, 0)], "shadow limits make no call");
    let hits: Vec<_> = cached.counts().iter().map(|(_, of)| of.deny_cache_hits).collect();
    assert_eq!(hits, [0, 0, 2]);
}

#[test]
fn a_block_stays_a_block() {
    let limits =
        "  - {name: user, key: [user], rate: 1/h, penalty: {after: 1, block: 2h, max: 2h}}\n";
    let [_, cached] = gates(limits);
    let step = (0, 0, 0, 1, false);
    let answered: Vec<_> = (0..3).map(|_| ask(&cached, NOW_US, step)).collect();
    assert_eq!(answered[2].calls, 0);
    assert!(answered[2].rows[0].3, "the row says so, whatever the source");
    assert_eq!(answered[1].rows[0].2, answered[2].rows[0].2);
}

#[test]
fn a_penalty_counts_refusals_beside_one_that_is_remembered() {
    let limits = "  - {name: ip, key: [ip], rate: 1/h}\n  - {name: user, key: [user], rate: 1/h, penalty: {after: 5, block: 2h, max: 2h}}\n";
    let [plain, cached] = gates(limits);
    for n in 0..9 {
        let step = (0, 0, 0, 1, false);
        let (want, have) = (ask(&plain, NOW_US, step), ask(&cached, NOW_US, step));
        assert_eq!(format!("{:?}", want.rows), format!("{:?}", have.rows), "{n}");
        assert_eq!(have.calls, u64::from(n < 6), "{n}");
    }
}

#[test]
fn keys_that_are_not_known_yet_do_not_open_the_store_to_a_flood() {
    let limits = "  - {name: ip, key: [ip], rate: 1/h, algorithm: gcra}\n  - {name: user, key: [user], rate: 9/h}\n";
    let [_, cached] = gates(limits);
    let (mut calls, mut whole) = (0, 0);
    for n in 0..200_u64 {
        let answered = ask(&cached, NOW_US + n * 1_000, (0, n as u8, 0, 1, false));
        assert_eq!(answered.allowed, n == 0);
        calls += answered.calls;
        whole += u64::from(answered.rows.len() == 2);
    }
    assert_eq!(calls, 2 + 16);
    assert_eq!(whole, calls, "rows that no call returned are left out");
    // Each cost has another wait. For a cost that is not cached, the answer has a wait that is long
    // enough.
    let [plain, cached] = gates("  - {name: user, key: [user], rate: 100/h}\n");
    ask(&plain, NOW_US, (0, 0, 0, 100, false));
    ask(&cached, NOW_US, (0, 0, 0, 100, false));
    let mut calls = 0;
    for cost in (1..=100).chain(1..=100) {
        let step = (0, 0, 0, cost, false);
        let (want, have) = (ask(&plain, NOW_US, step), ask(&cached, NOW_US, step));
        assert!(!have.allowed && have.retry_after_us >= want.retry_after_us, "{cost}");
        calls += have.calls;
    }
    assert!(calls <= 18, "{calls}");
}

#[test]
fn a_flood_on_two_limits_costs_one_call_a_second() {
    let limits = "  - {name: ip, key: [ip], rate: 1/h, algorithm: gcra}\n  - {name: user, key: [user], rate: 9/h}\n";
    let [_, cached] = gates(limits);
    let ask = |at_us: u64| ask(&cached, NOW_US + at_us, (0, 0, 0, 1, false));
    ask(0);
    let calls: u64 = (0..10_000).map(|n| ask(n * 99).calls).sum();
    assert_eq!(calls, 1);
    let calls: u64 = (0..10_000).map(|n| ask(5 * SECOND + n * 99).calls).sum();
    assert_eq!(calls, 1);
}
