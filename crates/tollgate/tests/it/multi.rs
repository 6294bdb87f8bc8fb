//! Checks of several descriptors.

use crate::faulty_store::Faulty;
use crate::now;
use tollgate::MemoryStore;
use tollgate::engine::{
    DenyCache, DescriptorMode, Gate, GateBuffers, GateSetup, MultiCheck, policy,
};
use tollgate::store::LeaseStore;
use tollgate_core::Rate;
use tollgate_policy::envoy::{ConfigOptions, Configs};

const NOW_US: u64 = 1_700_000_000_000_000;

const FILE: &str = "
limits:
  - {name: per-user, key: [user], rate: 5/min, algorithm: fixed-window}
  - {name: all, rate: 100/min, algorithm: fixed-window}
  - {name: bill, key: [account], rate: 10/min, algorithm: gcra, debt: true}
";

const RATELIMIT: &str = "
domain: edge
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 3}}
";

fn gate_over<S: LeaseStore>(store: S, strict: bool) -> Gate<S> {
    let mut options = ConfigOptions::default();
    options.strict = strict;
    let configs = Configs::read(&[("edge.yaml", RATELIMIT.as_bytes())], options).unwrap();
    let file = policy::compile(FILE.as_bytes()).unwrap();
    Gate::new(GateSetup::of(&file).with_envoy(configs), store).unwrap()
}

fn gate(strict: bool) -> Gate {
    gate_over(MemoryStore::default(), strict)
}

/// For each sub-check: whether each row admits, and the remaining units.
type SubCheckRows = Vec<Vec<(bool, u64)>>;

/// One sub-check for each (attribute, value, cost).
fn ask<S: LeaseStore>(
    gate: &Gate<S>,
    parts: &[(&str, &str, u64, DescriptorMode)],
) -> (bool, SubCheckRows) {
    let rules = gate.rules();
    let (mut asked, mut work) = (MultiCheck::default(), GateBuffers::default());
    for &(name, value, cost, how) in parts {
        asked.begin();
        let mut facts = rules.facts(Default::default());
        facts.set(name, value).unwrap();
        asked.add(&rules, &facts, cost, how);
    }
    let partial = now(gate.check_multi(&rules, NOW_US, &asked, &mut work));
    let rows = |part| partial.rows(part).map(|row| (row.outcome.admitted, row.outcome.remaining));
    (partial.verdict.allowed, (0..parts.len()).map(|part| rows(part).collect()).collect())
}

fn rule(gate: &Gate, user: &str, cost: u64, how: DescriptorMode) -> (bool, u64) {
    let rules = gate.rules();
    let (mut asked, mut work, mut key) =
        (MultiCheck::default(), GateBuffers::default(), Vec::new());
    let found = rules.envoy().unwrap().find("edge", &[("user", user)], &mut key).unwrap();
    asked.begin();
    assert!(asked.add_rule(&rules, found, &key, cost, how));
    let partial = now(gate.check_multi(&rules, NOW_US, &asked, &mut work));
    let row = *partial.rows(0).next().unwrap();
    assert_eq!(row.outcome.limit, 3);
    (partial.verdict.allowed, row.outcome.remaining)
}

#[test]
fn equal_limits_and_keys_are_one_charge_with_the_cost_of_all() {
    let gate = gate(true);
    let (allowed, said) = ask(
        &gate,
        &[
            ("user", "ann", 2, DescriptorMode::Enforce),
            ("user", "bob", 1, DescriptorMode::Enforce),
            ("user", "ann", 1, DescriptorMode::Enforce),
        ],
    );
    assert!(allowed);
    let ann = vec![(true, 2), (true, 96)];
    assert_eq!(said, [ann.clone(), vec![(true, 4), (true, 96)], ann]);
}

#[test]
fn parts_are_all_or_nothing() {
    let gate = gate(true);
    let (allowed, said) = ask(
        &gate,
        &[("user", "ann", 1, DescriptorMode::Enforce), ("user", "bob", 6, DescriptorMode::Enforce)],
    );
    assert!(!allowed);
    assert_eq!(said, [vec![(true, 5), (true, 100)], vec![(false, 5), (true, 100)]]);
}

#[test]
fn many_parts_are_merged_too() {
    let gate = gate(true);
    let names: Vec<String> = (0..40).map(|n| format!("u{}", n % 20)).collect();
    let parts: Vec<_> =
        names.iter().map(|name| ("user", name.as_str(), 1, DescriptorMode::Enforce)).collect();
    let (allowed, said) = ask(&gate, &parts);
    assert!(allowed && said.iter().all(|rows| *rows == [(true, 3), (true, 60)]), "{said:?}");
}

#[test]
fn a_look_takes_nothing_and_refuses_all() {
    let gate = gate(true);
    let looks =
        [("user", "ann", 0, DescriptorMode::Peek), ("user", "bob", 1, DescriptorMode::Enforce)];
    let (allowed, said) = ask(&gate, &looks);
    assert!(allowed);
    assert_eq!(said, [vec![(true, 5), (true, 99)], vec![(true, 4), (true, 99)]]);
    assert!(ask(&gate, &[("user", "ann", 5, DescriptorMode::Enforce)]).0);
    let (allowed, said) = ask(&gate, &looks);
    assert!(!allowed, "for one unit there is no room");
    assert_eq!(said[1], [(true, 4), (true, 94)], "so the other part is not charged");
}

#[test]
fn what_only_counts_refuses_nobody() {
    let gate = gate(true);
    let (allowed, said) = ask(
        &gate,
        &[("user", "ann", 6, DescriptorMode::Shadow), ("user", "bob", 1, DescriptorMode::Enforce)],
    );
    assert!(allowed && !said[0][0].0, "{said:?}");
}

#[test]
fn a_late_bill_is_taken_in_full() {
    let gate = gate(true);
    let bill = |cost, how| ask(&gate, &[("account", "a", cost, how)]);
    assert!(bill(0, DescriptorMode::Peek).0);
    assert!(bill(25, DescriptorMode::Enforce).0, "something was left");
    assert!(!bill(0, DescriptorMode::Peek).0, "now nothing is");
    let (allowed, said) = bill(10, DescriptorMode::Enforce);
    assert!(!allowed && said[0][1] == (false, 0), "{said:?}");
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("account", "a").unwrap();
    let peeked = gate.peek(&rules, NOW_US, &facts, 1, &mut GateBuffers::default()).now();
    // 35 units of 10 per minute are taken, so the first unit is back after 26 intervals of 6 s.
    assert_eq!(peeked.retry_after_us, Some(26 * 6_000_000));
}

#[test]
fn the_original_counts_refusals_and_passes_at_its_limit() {
    let gate = gate(false);
    assert_eq!(rule(&gate, "ann", 3, DescriptorMode::Enforce), (true, 0));
    assert_eq!(
        rule(&gate, "ann", 0, DescriptorMode::Peek),
        (true, 0),
        "the count is not above the limit"
    );
    assert_eq!(rule(&gate, "ann", 1, DescriptorMode::Enforce), (false, 0));
    assert_eq!(rule(&gate, "ann", 0, DescriptorMode::Peek), (false, 0), "now it is");
    assert_eq!(rule(&gate, "bob", 9, DescriptorMode::Enforce), (false, 0), "and burns the window");
    assert_eq!(rule(&gate, "bob", 1, DescriptorMode::Enforce), (false, 0));
    assert_eq!(rule(&gate, "cid", 1, DescriptorMode::Peek), (true, 3));
}

#[test]
fn strict_refusals_are_free() {
    let gate = gate(true);
    assert_eq!(rule(&gate, "bob", 9, DescriptorMode::Enforce), (false, 3));
    assert_eq!(rule(&gate, "bob", 3, DescriptorMode::Enforce), (true, 0));
    assert_eq!(rule(&gate, "bob", 0, DescriptorMode::Peek), (false, 0));
}

#[test]
fn a_limit_that_came_with_the_request_has_its_own_count() {
    let gate = gate(true);
    let rules = gate.rules();
    let (mut asked, mut work) = (MultiCheck::default(), GateBuffers::default());
    for (count, left) in [(2, 1), (2, 0), (9, 6)] {
        asked.clear();
        asked.begin();
        let rate = Rate::try_new(count, 60_000_000).unwrap();
        asked.add_inline(rate, b"key".to_vec(), 1, DescriptorMode::Enforce);
        let partial = now(gate.check_multi(&rules, NOW_US, &asked, &mut work));
        let row = partial.rows(0).next().unwrap();
        assert_eq!((row.outcome.limit, row.outcome.remaining), (count, left));
        assert_eq!(&*row.limit.name, "override");
    }
}

#[test]
fn refunds_give_back_and_never_more_than_was_taken() {
    let gate = gate(true);
    let rules = gate.rules();
    assert!(ask(&gate, &[("user", "ann", 4, DescriptorMode::Enforce)]).0);
    let mut asked = MultiCheck::default();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "ann").unwrap();
    for (units, left) in [(1, [2, 97]), (7, [5, 100])] {
        asked.clear();
        asked.begin();
        asked.add(&rules, &facts, units, DescriptorMode::Enforce);
        let partial = now(gate.refund_multi(&rules, NOW_US, &asked)).unwrap();
        let remaining: Vec<_> = partial.rows(0).map(|row| row.outcome.remaining).collect();
        assert_eq!(remaining, left);
        assert!(partial.verdict.allowed);
    }
}

#[test]
fn without_the_store_each_limit_does_as_it_says() {
    let gate = gate_over(Faulty::default(), true);
    gate.store().set_down(true);
    let (allowed, said) = ask(&gate, &[("user", "ann", 1, DescriptorMode::Enforce)]);
    assert!(allowed);
    assert_eq!(said, [[(true, 5), (true, 100)]]);
}

#[test]
fn what_only_counts_is_not_refused_by_what_is_remembered() {
    let cache = DenyCache::new(100, std::time::Duration::from_secs(1));
    let gate = gate_over(Faulty::default(), true).with_deny_cache(cache);
    let asked = |how| ask(&gate, &[("user", "ann", 5, how)]);
    let answers: Vec<_> = [
        DescriptorMode::Enforce,
        DescriptorMode::Enforce,
        DescriptorMode::Enforce,
        DescriptorMode::Shadow,
    ]
    .map(asked)
    .into();
    assert_eq!(answers.iter().map(|one| one.0).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(answers[1], answers[2], "with the limits that admit");
    assert_eq!(answers[1].1, [[(false, 0), (true, 95)]]);
    assert_eq!(gate.store().calls(), 3);
}
