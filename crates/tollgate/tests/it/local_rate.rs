//! `on_store_failure: {local: {rate: ...}}`: the local rate of a node while the store fails.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use proptest::prelude::*;
use tollgate::engine::{Gate, GateBuffers, Source};

const MINUTE_US: u64 = 60_000_000;

fn gate(limits: &str) -> Gate<Faulty> {
    Gate::new(setup(limits), Faulty::default()).unwrap()
}

/// Whether the gate admits one request of user `a`, and the source.
fn check(gate: &Gate<Faulty>, now_us: u64, plan: &str) -> (bool, Source) {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    facts.set("plan", plan).unwrap();
    let mut work = GateBuffers::default();
    let verdict = now(gate.check(&rules, now_us, &facts, 1, &mut work));
    (verdict.allowed, verdict.source)
}

/// The number of admissions out of `asked` requests at one instant.
fn admitted(gate: &Gate<Faulty>, now_us: u64, asked: usize) -> usize {
    (0..asked).filter(|_| check(gate, now_us, "free").0).count()
}

#[test]
fn each_node_admits_the_local_rate_and_counts_it_apart() {
    let text = "  - {name: l, key: [user], rate: 1000/day, algorithm: fixed-window, on_store_failure: {local: {rate: 20/min}}}\n";
    let nodes = [gate(text), gate(text)];
    for node in &nodes {
        node.store().set_down(true);
        assert_eq!(admitted(node, NOW_US, 50), 20);
        assert_eq!(admitted(node, NOW_US + MINUTE_US, 50), 20, "the next minute has its own");
        assert_eq!(check(node, NOW_US + MINUTE_US, "free"), (false, Source::LocalFallback));
        let counts = node.counts()[0].1;
        assert_eq!((counts.local_admitted, counts.local_refused), (40, 61));
        assert_eq!((counts.admitted, counts.refused, counts.fail_open), (0, 0, 0));
        node.store().set_down(false);
        assert_eq!(check(node, NOW_US, "free"), (true, Source::Store));
    }
}

#[test]
fn a_store_that_comes_and_goes_does_not_renew_the_local_rate() {
    let text =
        "  - {name: l, key: [user], rate: 1000/day, on_store_failure: {local: {rate: 4/min}}}\n";
    let gate = gate(text);
    let mut local = 0;
    for _ in 0..10 {
        gate.store().set_down(true);
        local += admitted(&gate, NOW_US, 1);
        gate.store().set_down(false);
        assert!(check(&gate, NOW_US, "free").0);
    }
    assert_eq!(local, 4);
}

#[test]
fn every_algorithm_has_its_local_rate() {
    for (limit, at_once) in [
        ("rate: 100/min, algorithm: sliding-window, on_store_failure: {local: {rate: 7/min}}", 7),
        ("rate: 100/min, algorithm: sliding-log, on_store_failure: {local: {rate: 7/min}}", 7),
        ("rate: 100/month, on_store_failure: {local: {rate: 7/h}}", 7),
        (
            "rate: 100/min, algorithm: token-bucket, burst: 5, on_store_failure: {local: {rate: 7/min}}",
            5,
        ),
        ("rate: 100/min, algorithm: gcra, burst: 50, on_store_failure: {local: {rate: 7/min}}", 7),
        (
            "rate: 100/min, algorithm: leaky-bucket, burst: 3, on_store_failure: {local: {rate: 7/min}}",
            3,
        ),
        (
            "rate: 100/min, algorithm: leaky-bucket, burst: 100, on_store_failure: {local: {rate: 7/min}}",
            7,
        ),
        (
            "rate: 100/min, algorithm: leaky-bucket, burst: 4, queue: 90, on_store_failure: {local: {rate: 7/min}}",
            7,
        ),
        ("rate: 9, algorithm: concurrency, on_store_failure: {local: {rate: 2}}", 2),
        ("rate: 100/min, on_store_failure: {local: {rate: 0/min}}", 0),
    ] {
        let gate = gate(&format!("  - {{name: l, key: [user], {limit}}}\n"));
        gate.store().set_down(true);
        assert_eq!(admitted(&gate, NOW_US, 30), at_once, "{limit}");
    }
}

#[test]
fn a_tier_below_the_local_rate_keeps_its_own() {
    let text = "  - {name: l, key: [user], rate: 100/min, tiers: {free: 3/min, pro: 1000/min}, on_store_failure: {local: {rate: 20/min}}}\n";
    let gate = gate(text);
    gate.store().set_down(true);
    let of = |plan| (0..50).filter(|_| check(&gate, NOW_US, plan).0).count();
    assert_eq!(of("free"), 3);
    // Both tiers have the same period, so the requests of `free` count.
    assert_eq!(of("pro"), 17);
}

#[test]
fn the_default_of_the_file_is_no_looser_than_a_limit() {
    let limits = "tiers: {default: free, from: plan}\non_store_failure: {local: {rate: 20/min}}\nlimits:\n  - {name: l, key: [user], rate: 3/min}\n";
    let compiled = tollgate::engine::policy::compile(limits.as_bytes()).unwrap();
    let gate = Gate::new(tollgate::engine::GateSetup::of(&compiled), Faulty::default()).unwrap();
    gate.store().set_down(true);
    assert_eq!(admitted(&gate, NOW_US, 50), 3);
}

#[test]
fn a_reload_to_another_period_starts_afresh() {
    let text = |rate| {
        format!(
            "  - {{name: l, key: [user], rate: 1000/day, algorithm: fixed-window, on_store_failure: {{local: {{rate: {rate}}}}}}}\n"
        )
    };
    let gate = gate(&text("5/min"));
    gate.store().set_down(true);
    assert_eq!(admitted(&gate, NOW_US, 50), 5);
    gate.replace(setup(&text("8/min"))).unwrap();
    assert_eq!(admitted(&gate, NOW_US, 50), 3, "the same period keeps its count");
    gate.replace(setup(&text("8/h"))).unwrap();
    assert_eq!(admitted(&gate, NOW_US, 50), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Over a whole outage, with a store that fails and recovers, one node admits no more than its
    /// local rate allows.
    #[test]
    fn an_outage_admits_no_more_than_the_envelope(
        (algorithm, windows) in prop::sample::select(vec![
            ("fixed-window", 2), ("sliding-window", 2), ("sliding-log", 1), ("token-bucket", 1), ("gcra", 1),
            ("leaky-bucket, burst: 90, queue: 9", 1),
        ]),
        count in 1_u64..20,
        period_s in prop::sample::select(vec![1_u64, 7, 60]),
        steps in prop::collection::vec((0_u64..3_000_000, any::<bool>(), 1_usize..6), 1..120),
    ) {
        let gate = gate(&format!(
            "  - {{name: l, key: [user], rate: 1000000/day, algorithm: {algorithm}, on_store_failure: {{local: {{rate: {count}/{period_s}s}}}}}}\n"
        ));
        let (mut now_us, mut local) = (NOW_US, 0);
        for (wait_us, down, asked) in steps {
            now_us += wait_us;
            gate.store().set_down(down);
            let seen = admitted(&gate, now_us, asked);
            local += if down { seen as u64 } else { 0 };
        }
        let counts = gate.counts()[0].1;
        prop_assert_eq!(counts.local_admitted, local);
        // Windows admit up to one window's units on each side of a boundary; other algorithms admit
        // a burst.
        let refilled = (now_us - NOW_US) * count / (period_s * 1_000_000);
        prop_assert!(local <= count * windows + refilled, "{} of {} + {}", local, count, refilled);
    }
}
