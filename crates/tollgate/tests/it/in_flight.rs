//! The charges of a request in flight, and how they end.

use crate::faulty_store::Faulty;
use crate::fixture::{GateFixture, NOW_US, check, facts, gate, rows, setup};
use crate::now;
use tollgate::engine::{AdmissionOptions, Gate, GateBuffers, InFlightCharges};

fn pass(desk: &GateFixture, passage: &AdmissionOptions<'_>) -> (bool, Option<InFlightCharges>) {
    let facts = facts(desk, &[("user", "a")]);
    let mut work = GateBuffers::default();
    let pass = desk.gate.admit(&desk.rules, NOW_US, &facts, passage, &mut work);
    let (verdict, held) = now(pass);
    (verdict.allowed, held)
}

fn left(desk: &GateFixture) -> Vec<u64> {
    let facts = facts(desk, &[("user", "a")]);
    let verdict = desk.gate.peek(&desk.rules, NOW_US, &facts, 1, &mut GateBuffers::default()).now();
    verdict.rows.iter().map(|row| row.outcome.remaining).collect()
}

#[test]
fn nothing_is_held_where_nothing_depends_on_the_answer() {
    let desk = gate("  - {name: l, key: [user], rate: 10/min}\n");
    let (allowed, held) = pass(&desk, &AdmissionOptions::default());
    assert!(allowed && held.is_none());
    let mut all = AdmissionOptions::default();
    all.hold_all = true;
    let mut held = pass(&desk, &all).1.expect("all of it");
    assert_eq!(left(&desk), [8]);
    held.refund();
    now(desk.gate.finish(NOW_US, held));
    assert_eq!(left(&desk), [9]);
}

#[test]
fn each_limit_ends_in_its_own_way() {
    let desk = gate(concat!(
        "  - {name: plain, key: [user], rate: 10/min, algorithm: fixed-window}\n",
        "  - {name: slots, key: [user], algorithm: concurrency, rate: 3}\n",
        "  - {name: tokens, key: [user], rate: 100/min, algorithm: fixed-window, cost: {estimate: 10, response: {json: n}}}\n",
        "  - {name: failures, key: [user], rate: 5/min, algorithm: fixed-window, on_response: {refund: [2xx]}}\n",
    ));
    let mut held = pass(&desk, &AdmissionOptions::default()).1.expect("three of four");
    let names: Vec<_> = held.limits().map(|(_, limit)| limit.name.to_string()).collect();
    assert_eq!(names, ["slots", "tokens", "failures"]);
    assert_eq!(left(&desk), [9, 2, 90, 4]);
    held.on_response(204, || NOW_US);
    held.settle(1, 25);
    now(desk.gate.finish(NOW_US, held));
    assert_eq!(left(&desk), [9, 3, 75, 5]);

    let mut held = pass(&desk, &AdmissionOptions::default()).1.expect("three of four");
    held.on_response(500, || NOW_US);
    now(desk.gate.finish(NOW_US, held));
    assert_eq!(left(&desk), [8, 3, 65, 4], "an answer that says nothing keeps estimate and charge");
}

#[test]
fn only_the_named_limits_apply() {
    let desk = gate("  - {name: a, rate: 0/min}\n  - {name: b, key: [user], rate: 5/min}\n");
    let mut passage = AdmissionOptions::default();
    passage.only = Some(&[1]);
    assert!(pass(&desk, &passage).0);
    passage.only = Some(&[0, 1]);
    assert!(!pass(&desk, &passage).0);
    assert_eq!(rows(&check(&desk, &[("user", "a")], 0)), [("a", true, 0), ("b", true, 4)]);
}

#[test]
fn offences_are_violations_and_take_nothing() {
    let desk = gate(
        "  - {name: l, key: [user], rate: 9/min, algorithm: fixed-window, on_response: {penalty: [401]}, penalty: {after: 2, block: 1m}}\n",
    );
    for allowed in [true, true, false] {
        let (passed, held) = pass(&desk, &AdmissionOptions::default());
        assert_eq!(passed, allowed);
        if let Some(mut held) = held {
            held.on_response(401, || NOW_US);
            now(desk.gate.finish(NOW_US, held));
        }
    }
    let facts = facts(&desk, &[("user", "a")]);
    let inspected = now(desk.gate.inspect(&desk.rules, NOW_US, &facts, None)).unwrap();
    assert_eq!(inspected[0].blocked_until_us, Some(NOW_US + 60_000_000));
}

#[test]
fn a_store_that_cannot_be_told_costs_no_panic_and_is_counted() {
    let limits = "  - {name: slots, key: [user], algorithm: concurrency, rate: 3}\n";
    let gate = Gate::new(setup(limits), Faulty::default()).unwrap();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let mut work = GateBuffers::default();
    let (_, held) =
        now(gate.admit(&rules, NOW_US, &facts, &AdmissionOptions::default(), &mut work));
    gate.store().set_down(true);
    now(gate.finish(NOW_US, held.expect("a slot")));
    assert_eq!(gate.store().calls(), 2);
    gate.store().set_down(false);
    let verdict = now(gate.peek(&rules, NOW_US, &facts, 1, &mut work));
    assert_eq!(verdict.rows[0].outcome.remaining, 2, "the slot is free when its time has passed");
}
