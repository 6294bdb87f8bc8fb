//! A check of a known key allocates nothing.

use std::sync::Arc;
use tollgate::engine::{AdmissionOptions, Gate, GateBuffers, GateSetup, SingleCheck, policy};
use tollgate::store::Store;
use tollgate::{Limiter, ManualClock, MemoryStore, Quota};
use tollgate_core::algorithm::Gcra;
use tollgate_core::header::{HeaderLines, Profile, Row, render_all};
use tollgate_core::{LimitParams, Outcome, Rate};

#[test]
fn no_allocation_for_a_known_key() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let quota = Quota::per_second(100);
    let limiter = Limiter::builder(quota).clock(clock.clone()).build().unwrap();
    // The first calls create the key and the thread's buffers.
    assert!(limiter.check("a key of up to thirty-two bytes").is_admitted());
    let mut outcomes = [0, 0];
    let counted = allocation_counter::measure(|| {
        for _ in 0..2_000 {
            clock.advance(5_000);
            let admitted = limiter.check("a key of up to thirty-two bytes").is_admitted();
            outcomes[usize::from(admitted)] += 1;
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert!(outcomes.iter().all(|&count| count > 100), "both outcomes were seen: {outcomes:?}");
}

/// A key that is not text does not allocate either: a number, an address, a long tuple.
#[test]
fn no_allocation_for_keys_of_any_kind() {
    let limiter = Limiter::new(Quota::per_second(100));
    let (ip, path) = (std::net::IpAddr::from([0_u8; 16]), "/a/path".repeat(100));
    let look = || {
        limiter.peek(42).admits
            && limiter.peek(ip).admits
            && limiter.peek(*b"\xFF a hash of 16").admits
            && limiter.peek((ip, &path, ("tenant", 7))).admits
    };
    assert!(look());
    let counted = allocation_counter::measure(|| assert!((0..100).all(|_| look())));
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

/// A batch does not allocate either, after the first one.
#[test]
fn no_allocation_for_a_batch_of_known_keys() {
    let file = policy::compile(b"").unwrap();
    let gate = Gate::new(GateSetup::of(&file), MemoryStore::default()).unwrap();
    let rate = Rate::try_new(100, 1_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, None).unwrap());
    let (params_id, rules) = (gate.store().register_params(&params), gate.rules());
    let keys: Vec<String> = (0..64).map(|key| format!("key-{key}")).collect();
    let singles: Vec<SingleCheck<'_>> = keys
        .iter()
        .map(|key| SingleCheck::Inline { key: key.as_bytes(), params: &params, params_id, cost: 7 })
        .collect();
    let mut work = GateBuffers::default();
    let mut batch = |now_us: u64| {
        gate.check_batch(&rules, now_us, singles.iter().copied(), &mut work).now();
        work.verdicts().iter().filter(|decided| decided.allowed).count()
    };
    let start_us = 1_700_000_000_000_000;
    batch(start_us);
    let mut admitted = 0;
    let counted = allocation_counter::measure(|| {
        admitted = (0..100).map(|n| batch(start_us + n * 5_000)).sum();
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert!((64..6_400).contains(&admitted), "both outcomes were seen: {admitted}");
}

/// Headers of alternating responses do not allocate either, even if they exceed the cache, after
/// the first of each.
#[test]
fn no_allocation_for_fields_in_kept_memory() {
    let outcome = Outcome::admitting(100);
    let row = |name, window_us| Row::new(name, Some(window_us), &outcome);
    let answers: Vec<Vec<Row<'_>>> = (1..=7_u64)
        .map(|n| vec![row("first", n * 1_000_000), row("second", 60_000_000)])
        .chain([vec![row("alone", 1_000_000).partition(b"key")], vec![]])
        .collect();
    let profiles = [Profile::Draft11, Profile::XRateLimitEpoch];
    let mut fields = HeaderLines::new();
    let mut render = |rows: &[Row<'_>]| {
        fields.clear();
        render_all(&profiles, rows, |row| *row, 1_700_000_000_000_000, &mut fields);
        fields.len()
    };
    let turn = |render: &mut dyn FnMut(&[Row<'_>]) -> usize| {
        answers.iter().map(|rows| render(rows)).sum::<usize>()
    };
    let mut written: usize = (0..4).map(|_| turn(&mut render)).sum();
    assert_eq!(written, 4 * 8 * 6);
    let counted =
        allocation_counter::measure(|| written = (0..100).map(|_| turn(&mut render)).sum());
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(written, 100 * 8 * 6);
}

/// A request that enters the adaptive shedder and ends with its response does not allocate either.
#[test]
fn no_allocation_for_a_request_that_the_shedder_admits() {
    let file = b"classes: [{name: critical, match: {user: alice}}, {name: normal, default: true}]
shed: {adaptive: {}, fair_by: [user]}";
    let compiled = policy::compile(file).unwrap();
    let gate = Gate::new(GateSetup::of(&compiled), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let mut work = GateBuffers::default();
    let clock = || 1_700_000_000_000_000;
    let mut options = AdmissionOptions::default();
    options.adaptive_clock = Some(&clock);
    let mut facts = ["alice", "bob"].map(|user| {
        let mut facts = rules.facts(Default::default());
        facts.set("user", user).unwrap();
        facts
    });
    let mut admit = |now_us: u64| {
        let admitted = facts.iter_mut().filter(|facts| {
            let (verdict, held) = gate.admit(&rules, now_us, facts, &options, &mut work).now();
            let is_admitted = verdict.allowed;
            work.recycle(verdict);
            let mut held = held.expect("the shedder holds it");
            held.on_response(200, || now_us + 1_000);
            assert!(gate.finish_now(|| now_us + 1_000, held).is_none());
            is_admitted
        });
        admitted.count()
    };
    let start_us = 1_700_000_000_000_000;
    assert_eq!(admit(start_us), 2);
    let mut admitted = 0;
    let counted = allocation_counter::measure(|| {
        admitted = (1..2_000).map(|n| admit(start_us + n * 2_000)).sum();
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(admitted, 2 * 1_999);
    assert_eq!(gate.adaptive().map(|shedder| shedder.in_flight), Some(0));
}
