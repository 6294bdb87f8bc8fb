//! Blocks from the store hold while a node decides without it.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use tollgate::engine::{Gate, GateBuffers, Source};

const SECOND_US: u64 = 1_000_000;
const LIMITS: &str = "  - {name: l, key: [user], rate: 9/s, algorithm: fixed-window, tiers: {pro: 9/min}, penalty: {after: 1, block: 1m, max: 1m}, on_store_failure: local}\n";

fn gate() -> Gate<Faulty> {
    Gate::new(setup(LIMITS), Faulty::default()).unwrap()
}

fn check(gate: &Gate<Faulty>, now_us: u64, cost: u64) -> (Source, Option<u64>) {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let verdict = now(gate.check(&rules, now_us, &facts, cost, &mut GateBuffers::default()));
    (verdict.source, verdict.retry_after_us)
}

/// Blocks the key, or unblocks it.
fn block(gate: &Gate<Faulty>, until_us: Option<u64>) -> bool {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    now(gate.block(&rules, NOW_US, &facts, None, until_us)).is_ok()
}

const BLOCKED: fn(u64) -> (Source, Option<u64>) =
    |seconds| (Source::Blocked, Some(seconds * SECOND_US));
const ADMITTED: (Source, Option<u64>) = (Source::LocalFallback, Some(0));

#[test]
fn an_operators_block_holds_without_the_store_until_its_end() {
    let gate = gate();
    assert!(block(&gate, Some(NOW_US + 3_600 * SECOND_US)));
    gate.store().set_down(true);
    assert_eq!(check(&gate, NOW_US, 1), BLOCKED(3_600));
    gate.sweep(NOW_US + 3_599 * SECOND_US);
    assert_eq!(check(&gate, NOW_US + 3_599 * SECOND_US, 1), BLOCKED(1));
    assert_eq!(check(&gate, NOW_US + 3_600 * SECOND_US, 1), ADMITTED);
}

/// Without the store, a closed limit admits only cost 0; in a block it refuses that too.
#[test]
fn a_block_of_a_closed_limit_refuses_cost_zero() {
    let limits = LIMITS.replace("on_store_failure: local", "on_store_failure: closed");
    let gate = Gate::new(setup(&limits), Faulty::default()).unwrap();
    assert!(block(&gate, Some(NOW_US + 3_600 * SECOND_US)));
    gate.store().set_down(true);
    assert_eq!(check(&gate, NOW_US, 0), BLOCKED(3_600));
    assert_eq!(check(&gate, NOW_US, 1), (Source::FailClosed, Some(SECOND_US)));
    assert_eq!(check(&gate, NOW_US + 3_600 * SECOND_US, 0), (Source::FailOpen, Some(0)));

    let gate = Gate::new(setup(&limits), Faulty::default()).unwrap();
    assert_eq!(check(&gate, NOW_US, 9).0, Source::Store);
    assert_eq!(check(&gate, NOW_US, 1), BLOCKED(60), "a penalty");
    gate.store().set_down(true);
    assert_eq!(check(&gate, NOW_US + 59 * SECOND_US, 0), BLOCKED(1));
    assert_eq!(check(&gate, NOW_US + 60 * SECOND_US, 0), (Source::FailOpen, Some(0)));
}

#[test]
fn a_penalty_that_the_store_showed_holds_without_it() {
    let gate = gate();
    assert_eq!(check(&gate, NOW_US, 9).0, Source::Store);
    assert_eq!(check(&gate, NOW_US, 1), BLOCKED(60));
    gate.store().set_down(true);
    assert_eq!(check(&gate, NOW_US + 59 * SECOND_US, 1), BLOCKED(1));
    assert_eq!(check(&gate, NOW_US + 60 * SECOND_US, 1), ADMITTED);
}

#[test]
fn a_block_that_the_store_shows_no_more_is_forgotten() {
    let gate = gate();
    assert!(block(&gate, Some(NOW_US + 3_600 * SECOND_US)));
    assert_eq!(check(&gate, NOW_US, 1), BLOCKED(3_600));
    now(gate.store().reset_elsewhere());
    assert_eq!(check(&gate, NOW_US, 1).0, Source::Store);
    gate.store().set_down(true);
    assert_eq!(check(&gate, NOW_US, 1), ADMITTED);
}

#[test]
fn an_operator_ends_the_blocks_of_this_node() {
    let gate = gate();
    assert!(block(&gate, Some(NOW_US + 3_600 * SECOND_US)));
    assert!(block(&gate, None));
    gate.store().set_down(true);
    assert_eq!(check(&gate, NOW_US, 9), ADMITTED);
    assert_eq!(check(&gate, NOW_US, 1), BLOCKED(60), "a penalty of this node");
    assert!(!block(&gate, None), "the store reports the failure");
    assert_eq!(check(&gate, NOW_US + SECOND_US, 1), ADMITTED);
}
