//! Slots of requests that take longer than a slot lasts.

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
    let limit = "{name: slots, key: [user], algorithm: concurrency, ttl: 30s, rate:";
    Gate::new(setup(&format!("  - {limit} {slots}}}\n")), Faulty::default()).unwrap()
}

fn pass(gate: &Gate<Faulty>, now_us: u64) -> Option<InFlightCharges> {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
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

/// A request that comes into a full limit is refused whatever happens to slots meanwhile.
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

/// The store takes its time with a renewal, and the request ends before it has answered.
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

/// A request is dropped while the store takes its time with a renewal, and another one comes.
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
    // The slot of the first is free after its `ttl`, that of the other one is renewed.
    for second in 16..100 {
        assert!(now(gate.renew_slots(NOW_US + second * SECOND_US)).is_some());
        let free = if second < 30 { 1 } else { 2 };
        assert_eq!(left(&gate, NOW_US + second * SECOND_US), free, "second {second}");
    }
    now(gate.finish(NOW_US + 100 * SECOND_US, other));
    assert_eq!(left(&gate, NOW_US + 100 * SECOND_US), 3);
    assert_eq!(now(gate.renew_slots(NOW_US + 100 * SECOND_US)), None);
}

/// The store takes its time with the end of a request.
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

/// Renewal stops, as when a runtime ends.
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
    // What the broken renewal took is free when its time has passed.
    assert_eq!(left(&gate, now_us), 2);
    assert_eq!(now(gate.renew_slots(now_us)), None);
}
