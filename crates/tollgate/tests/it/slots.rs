//! Slots of requests that take longer than the `ttl`.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use tollgate::engine::{AdmissionOptions, Gate, GateBuffers, InFlightCharges};

const SECOND_US: u64 = 1_000_000;

fn gate() -> Gate<Faulty> {
    gate_of(2)
}

fn gate_of(slots: u64) -> Gate<Faulty> {
    gate_with(slots, "open")
}

fn gate_with(slots: u64, on_store_failure: &str) -> Gate<Faulty> {
    let limit = "{name: slots, key: [user], algorithm: concurrency, ttl: 30s, rate:";
    let limit = format!("  - {limit} {slots}, on_store_failure: {on_store_failure}}}\n");
    Gate::new(setup(&limit), Faulty::default()).unwrap()
}

fn pass(gate: &Gate<Faulty>, now_us: u64) -> Option<InFlightCharges> {
    pass_of("a", gate, now_us)
}

fn pass_of(user: &str, gate: &Gate<Faulty>, now_us: u64) -> Option<InFlightCharges> {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", user).unwrap();
    now(gate.admit(
        &rules,
        now_us,
        &facts,
        &AdmissionOptions::default(),
        &mut GateBuffers::default(),
    ))
    .1
}

fn left(gate: &Gate<Faulty>, now_us: u64) -> u64 {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let verdict = now(gate.peek(&rules, now_us, &facts, 1, &mut GateBuffers::default()));
    verdict.rows[0].outcome.remaining
}

#[test]
fn a_slot_is_kept_for_as_long_as_its_request_lasts_and_free_at_its_end() {
    let gate = gate();
    let held = pass(&gate, NOW_US).unwrap();
    assert!(held.has_slots());
    let mut now_us = NOW_US;
    while now_us < NOW_US + 100 * SECOND_US {
        let wait = now(gate.renew_slots(now_us)).expect("a request is under way");
        now_us += wait.as_micros() as u64;
        assert_eq!(left(&gate, now_us), 1);
    }
    now(gate.finish(now_us, held));
    assert_eq!(left(&gate, now_us), 2);
    assert_eq!(now(gate.renew_slots(now_us)), None);
}

#[test]
fn nobody_renews_what_was_let_go() {
    let gate = gate();
    drop(pass(&gate, NOW_US).unwrap());
    assert_eq!(now(gate.renew_slots(NOW_US + 20 * SECOND_US)), None);
    assert_eq!(left(&gate, NOW_US + 29 * SECOND_US), 1, "as after a crash");
    assert_eq!(left(&gate, NOW_US + 30 * SECOND_US), 2);
}

#[test]
fn a_store_that_is_away_for_a_while_costs_nobody_their_slot() {
    let gate = gate();
    let held = pass(&gate, NOW_US).unwrap();
    gate.store().set_down(true);
    for second in 10..25 {
        assert!(now(gate.renew_slots(NOW_US + second * SECOND_US)).is_some());
    }
    gate.store().set_down(false);
    now(gate.renew_slots(NOW_US + 25 * SECOND_US));
    assert_eq!(left(&gate, NOW_US + 31 * SECOND_US), 1);
    now(gate.finish(NOW_US + 31 * SECOND_US, held));
    assert_eq!(left(&gate, NOW_US + 31 * SECOND_US), 2);
}

/// A request to a full limit is refused, whatever happens to other slots meanwhile.
#[test]
fn a_limit_that_is_full_stays_full() {
    let gate = gate();
    let held = [pass(&gate, NOW_US).unwrap(), pass(&gate, NOW_US).unwrap()];
    for second in 1..200 {
        let now_us = NOW_US + second * SECOND_US;
        now(gate.renew_slots(now_us));
        assert!(pass(&gate, now_us).is_none());
    }
    for held in held {
        now(gate.finish(NOW_US + 200 * SECOND_US, held));
    }
    assert_eq!(left(&gate, NOW_US + 200 * SECOND_US), 2);
}

/// A request ends while the store still answers its renewal.
#[test]
fn an_end_during_a_renewal_frees_the_slot() {
    let gate = gate();
    let held = pass(&gate, NOW_US).unwrap();
    let now_us = NOW_US + 15 * SECOND_US;
    gate.store().set_slow(true);
    {
        let mut renewing = pin!(gate.renew_slots(now_us));
        let context = &mut Context::from_waker(Waker::noop());
        assert!(renewing.as_mut().poll(context).is_pending());
        gate.store().set_slow(false);
        now(gate.finish(now_us, held));
        while renewing.as_mut().poll(context).is_pending() {}
    }
    assert_eq!(left(&gate, now_us), 2);
    assert_eq!(now(gate.renew_slots(now_us)), None);
}

/// A request is dropped during a renewal, and another request arrives.
#[test]
fn a_drop_during_a_renewal_costs_no_other_request_its_slot() {
    let gate = gate_of(3);
    let dropped = pass(&gate, NOW_US).unwrap();
    let now_us = NOW_US + 15 * SECOND_US;
    gate.store().set_slow(true);
    let other = {
        let mut renewing = pin!(gate.renew_slots(now_us));
        let context = &mut Context::from_waker(Waker::noop());
        assert!(renewing.as_mut().poll(context).is_pending());
        gate.store().set_slow(false);
        drop(dropped);
        let other = pass(&gate, now_us).unwrap();
        while renewing.as_mut().poll(context).is_pending() {}
        other
    };
    // The slot of the first request is free after its `ttl`; the slot of the other is renewed.
    for second in 16..100 {
        assert!(now(gate.renew_slots(NOW_US + second * SECOND_US)).is_some());
        let free = if second < 30 { 1 } else { 2 };
        assert_eq!(left(&gate, NOW_US + second * SECOND_US), free, "second {second}");
    }
    now(gate.finish(NOW_US + 100 * SECOND_US, other));
    assert_eq!(left(&gate, NOW_US + 100 * SECOND_US), 3);
    assert_eq!(now(gate.renew_slots(NOW_US + 100 * SECOND_US)), None);
}

/// The store answers the end of a request late.
#[test]
fn nobody_renews_a_slot_whose_request_has_ended() {
    let gate = gate();
    let held = pass(&gate, NOW_US).unwrap();
    gate.store().set_slow(true);
    let mut ending = pin!(gate.finish(NOW_US, held));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(ending.as_mut().poll(context).is_pending());
    gate.store().set_slow(false);
    assert_eq!(now(gate.renew_slots(NOW_US + 20 * SECOND_US)), None);
    while ending.as_mut().poll(context).is_pending() {}
    assert_eq!(left(&gate, NOW_US + 20 * SECOND_US), 2);
}

/// Renewal stops, as at the end of a runtime.
#[test]
fn a_renewal_that_is_dropped_is_begun_again() {
    let gate = gate();
    let (first, second) = (pass(&gate, NOW_US).unwrap(), pass(&gate, NOW_US).unwrap());
    gate.store().set_slow(true);
    {
        let mut renewing = pin!(gate.renew_slots(NOW_US + 10 * SECOND_US));
        assert!(renewing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    gate.store().set_slow(false);
    now(gate.renew_slots(NOW_US + 11 * SECOND_US));
    let now_us = NOW_US + 40 * SECOND_US;
    assert_eq!(left(&gate, now_us), 0, "both are held");
    now(gate.finish(now_us, first));
    now(gate.finish(now_us, second));
    // The slot of the interrupted renewal is free after its `ttl`.
    assert_eq!(left(&gate, now_us), 2);
    assert_eq!(now(gate.renew_slots(now_us)), None);
}

/// The store is away for longer than slots last, and their requests still run.
#[test]
fn slots_that_lapsed_are_taken_again_before_others_of_their_key() {
    let gate = gate_with(2, "closed");
    let [first, second] = [pass(&gate, NOW_US).unwrap(), pass(&gate, NOW_US).unwrap()];
    gate.store().set_down(true);
    let mut now_us = NOW_US;
    while now_us < NOW_US + 40 * SECOND_US {
        now_us += now(gate.renew_slots(now_us)).expect("two requests run").as_micros() as u64;
        assert!(pass(&gate, now_us).is_none(), "closed");
    }
    gate.store().set_down(false);
    assert_eq!(left(&gate, now_us), 2, "the store has forgotten the slots");
    assert!(pass(&gate, now_us).is_none(), "this node has not");
    let other = pass_of("b", &gate, now_us).expect("another key has room");
    now(gate.finish(now_us, other));
    // A lapsed slot is not left alone for a part of its `ttl`.
    now(gate.renew_slots(now_us + SECOND_US / 10));
    assert_eq!(left(&gate, now_us), 0);
    now(gate.finish(now_us, first));
    let third = pass(&gate, now_us).expect("a slot is free");
    assert!(pass(&gate, now_us).is_none());
    now(gate.finish(now_us, second));
    now(gate.finish(now_us, third));
    assert_eq!(left(&gate, now_us), 2);
}

/// Requests that end while the store is away hold nothing back.
#[test]
fn a_lapsed_slot_of_an_ended_request_refuses_nobody() {
    let gate = gate_with(1, "closed");
    let held = pass(&gate, NOW_US).unwrap();
    gate.store().set_down(true);
    for second in 10..40 {
        now(gate.renew_slots(NOW_US + second * SECOND_US));
    }
    let now_us = NOW_US + 40 * SECOND_US;
    now(gate.finish(now_us, held));
    gate.store().set_down(false);
    let next = pass(&gate, now_us).expect("nothing runs");
    now(gate.finish(now_us, next));
}

/// A limit that is open without its store does not wait for the renewal.
#[test]
fn an_open_limit_asks_the_store_whatever_lapsed() {
    let gate = gate_with(1, "open");
    let held = pass(&gate, NOW_US).unwrap();
    gate.store().set_down(true);
    for second in 10..40 {
        now(gate.renew_slots(NOW_US + second * SECOND_US));
    }
    gate.store().set_down(false);
    let now_us = NOW_US + 40 * SECOND_US;
    let next = pass(&gate, now_us).expect("the store has room");
    assert_eq!(left(&gate, now_us), 0, "the store counted it");
    now(gate.finish(now_us, held));
    now(gate.finish(now_us, next));
}
