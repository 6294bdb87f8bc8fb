//! Charges that a node makes while the store fails: its fallback store settles, refunds and renews
//! them.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use tollgate::engine::{
    AdmissionOptions, Gate, GateBuffers, InFlightCharges, ReservationEnd, ReservationError,
    SettledReservation, Source,
};

const SECOND_US: u64 = 1_000_000;

fn down(limits: &str) -> Gate<Faulty> {
    let gate = Gate::new(setup(limits), Faulty::default()).unwrap();
    gate.store().set_down(true);
    gate
}

fn with_facts<T>(
    gate: &Gate<Faulty>,
    work: impl FnOnce(&tollgate::engine::Rules, &tollgate::engine::policy::Facts<'_>) -> T,
) -> T {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    facts.set("org", "o").unwrap();
    work(&rules, &facts)
}

fn admit(gate: &Gate<Faulty>, now_us: u64) -> (bool, Option<InFlightCharges>) {
    with_facts(gate, |rules, facts| {
        let (options, mut buffers) = (AdmissionOptions::default(), GateBuffers::default());
        let (verdict, held) = now(gate.admit(rules, now_us, facts, &options, &mut buffers));
        (verdict.allowed, held)
    })
}

fn reserve(gate: &Gate<Faulty>, id: &str, ttl_us: Option<u64>) -> Result<bool, ReservationError> {
    with_facts(gate, |rules, facts| {
        let mut buffers = GateBuffers::default();
        let reserved = now(gate.reserve(rules, NOW_US, id, facts, 1, ttl_us, &mut buffers));
        reserved.map(|(verdict, _)| verdict.allowed)
    })
}

fn end(
    gate: &Gate<Faulty>,
    id: &str,
    end: ReservationEnd,
) -> Result<SettledReservation, ReservationError> {
    now(gate.end(NOW_US, id, end))
}

/// The remaining units of each limit.
fn left(gate: &Gate<Faulty>, now_us: u64) -> Vec<u64> {
    with_facts(gate, |rules, facts| {
        let verdict = now(gate.peek(rules, now_us, facts, 1, &mut GateBuffers::default()));
        verdict.rows.iter().map(|row| row.outcome.remaining).collect()
    })
}

/// An estimate of one unit, with the limit's period and with another one.
const ESTIMATES: [(&str, &str); 2] = [("100/day", "local"), ("1000/day", "{local: {rate: 100/h}}")];

fn estimate((rate, policy): (&str, &str)) -> String {
    format!(
        "  - {{name: tokens, key: [user], rate: {rate}, algorithm: fixed-window, \
         cost: {{estimate: 1, response: {{header: x-cost}}}}, on_store_failure: {policy}}}\n"
    )
}

#[test]
fn the_cost_of_a_response_is_charged_without_the_store() {
    for policy in ESTIMATES {
        let gate = down(&estimate(policy));
        for expected in [99, 49] {
            let mut held = admit(&gate, NOW_US).1.expect("an estimate");
            assert_eq!(left(&gate, NOW_US), [expected]);
            held.on_response(200, || NOW_US);
            held.settle(0, 50);
            now(gate.finish(NOW_US, held));
        }
        assert!(!admit(&gate, NOW_US).0, "{policy:?}: 2 x 50 of 100 units are used");
    }
}

#[test]
fn a_store_that_returns_is_not_charged_for_what_it_did_not_decide() {
    let gate = down(&estimate(ESTIMATES[0]));
    let mut local = admit(&gate, NOW_US).1.expect("an estimate");
    gate.store().set_down(false);
    let mut stored = admit(&gate, NOW_US).1.expect("an estimate");
    local.settle(0, 60);
    now(gate.finish(NOW_US, local));
    assert_eq!(left(&gate, NOW_US), [99], "the store has its own estimate alone");
    gate.store().set_down(true);
    assert_eq!(left(&gate, NOW_US), [40]);
    stored.settle(0, 30);
    now(gate.finish(NOW_US, stored));
    assert_eq!(left(&gate, NOW_US), [40], "the store was not reachable");
}

#[test]
fn statuses_refund_and_count_violations_without_the_store() {
    let gate = down(
        "  - {name: l, key: [user], rate: 9/h, algorithm: fixed-window, on_response: {refund: [2xx], penalty: [401]}, penalty: {after: 2, block: 2h}, on_store_failure: local}\n",
    );
    let respond = |status| {
        let mut held = admit(&gate, NOW_US).1.expect("a charge that the status may undo");
        held.on_response(status, || NOW_US);
        now(gate.finish(NOW_US, held));
    };
    respond(200);
    assert_eq!(left(&gate, NOW_US), [9]);
    respond(401);
    respond(401);
    assert!(!admit(&gate, NOW_US).0, "two violations block the key");
    assert!(!admit(&gate, NOW_US + 7_100 * SECOND_US).0);
    assert!(admit(&gate, NOW_US + 7_200 * SECOND_US).0);
}

#[test]
fn refusals_without_the_store_count_for_the_penalty() {
    let gate = down(
        "  - {name: l, key: [user], rate: 1/s, algorithm: fixed-window, penalty: {after: 2, block: 1m}, on_store_failure: local}\n",
    );
    let check = |now_us| {
        with_facts(&gate, |rules, facts| {
            let verdict = now(gate.check(rules, now_us, facts, 1, &mut GateBuffers::default()));
            (verdict.source, verdict.retry_after_us)
        })
    };
    assert_eq!(check(NOW_US), (Source::LocalFallback, Some(0)));
    assert_eq!(check(NOW_US), (Source::LocalFallback, Some(SECOND_US)));
    assert_eq!(check(NOW_US), (Source::Blocked, Some(60 * SECOND_US)));
    assert_eq!(check(NOW_US + 59 * SECOND_US), (Source::Blocked, Some(SECOND_US)));
    assert_eq!(check(NOW_US + 60 * SECOND_US), (Source::LocalFallback, Some(0)));
}

#[test]
fn slots_without_the_store_last_as_long_as_their_requests() {
    for policy in ["local", "{local: {rate: 2}}"] {
        let gate = down(&format!(
            "  - {{name: slots, key: [user], algorithm: concurrency, rate: 2, ttl: 30s, on_store_failure: {policy}}}\n"
        ));
        let held = [admit(&gate, NOW_US).1.unwrap(), admit(&gate, NOW_US).1.unwrap()];
        for second in 1..100 {
            // The store is sometimes available, and has other slots.
            gate.store().set_down(second % 7 != 0);
            let now_us = NOW_US + second * SECOND_US;
            assert!(now(gate.renew_slots(now_us)).is_some());
            gate.store().set_down(true);
            assert!(!admit(&gate, now_us).0, "{policy}: both slots are held after {second} s");
        }
        let now_us = NOW_US + 100 * SECOND_US;
        for (free, held) in (1..).zip(held) {
            now(gate.finish(now_us, held));
            assert_eq!(left(&gate, now_us), [free], "{policy}");
        }
        assert_eq!(now(gate.renew_slots(now_us)), None);
        for _ in 0..9 {
            let held = admit(&gate, now_us).1.expect("a slot is free at the end of its request");
            now(gate.finish(now_us, held));
        }
        gate.store().set_down(false);
        assert_eq!(left(&gate, now_us), [2], "the store has no local slots");
    }
}

#[test]
fn a_reservation_without_the_store_is_settled_on_its_node() {
    for policy in ESTIMATES {
        let gate = down(&estimate(policy));
        for id in ["1", "2"] {
            assert_eq!(reserve(&gate, id, None), Ok(true));
            // The store may be available again.
            gate.store().set_down(id == "1");
            let settled = end(&gate, id, ReservationEnd::Settle(50)).unwrap();
            assert_eq!(settled.tightest().unwrap().source, Source::LocalFallback);
            gate.store().set_down(true);
        }
        assert_eq!(
            reserve(&gate, "3", None),
            Ok(false),
            "{policy:?}: 2 x 50 of 100 units are used"
        );
        assert_eq!(
            end(&gate, "2", ReservationEnd::Cancel).unwrap_err(),
            ReservationError::Ended,
            "only the first end counts"
        );
        let other = down(&estimate(policy));
        other.store().set_down(false);
        assert_eq!(
            end(&other, "1", ReservationEnd::Settle(50)).unwrap_err(),
            ReservationError::Unknown,
            "no other node knows the reservation"
        );
    }
}

#[test]
fn a_cancelled_reservation_gives_back_units_and_slots() {
    let gate = down(concat!(
        "  - {name: l, key: [user], rate: 3/day, algorithm: fixed-window, on_store_failure: local}\n",
        "  - {name: slots, key: [user], algorithm: concurrency, rate: 3, ttl: 5s, on_store_failure: local}\n",
    ));
    for id in ["1", "2", "3"] {
        assert_eq!(reserve(&gate, id, Some(60 * SECOND_US)), Ok(true));
    }
    assert_eq!(left(&gate, NOW_US + 59 * SECOND_US), [0, 0], "slots last as long as reservations");
    assert_eq!(reserve(&gate, "4", None), Ok(false));
    end(&gate, "1", ReservationEnd::Cancel).unwrap();
    assert_eq!(left(&gate, NOW_US), [1, 1]);
    assert_eq!(reserve(&gate, "2", None), Err(ReservationError::Taken));
    assert_eq!(left(&gate, NOW_US), [1, 1], "a reservation that is not kept takes nothing");
}

const TWO: &str = concat!(
    "  - {name: stored, key: [org], rate: 100/day, algorithm: fixed-window, cost: {estimate: 1, response: {header: x-cost}}}\n",
    "  - {name: local, key: [user], rate: 100/day, algorithm: fixed-window, cost: {estimate: 1, response: {header: x-cost}}, on_store_failure: local}\n",
);

/// The server of one limit fails, and that of the other answers.
fn half_down() -> Gate<Faulty> {
    let gate = Gate::new(setup(TWO), Faulty::default()).unwrap();
    gate.store().fail_value(Some("a"));
    gate
}

#[test]
fn a_request_with_a_local_charge_settles_both_parts() {
    let gate = half_down();
    let mut held = admit(&gate, NOW_US).1.expect("two estimates");
    held.settle(0, 20);
    held.settle(1, 30);
    now(gate.finish(NOW_US, held));
    assert_eq!(left(&gate, NOW_US), [80, 70]);
    gate.store().fail_value(None);
    assert_eq!(left(&gate, NOW_US), [80, 100], "the store has no part of the local charge");
}

#[test]
fn a_reservation_with_a_local_charge_settles_both_parts() {
    let gate = half_down();
    for (id, expected) in [("1", [60, 60]), ("2", [20, 20])] {
        assert_eq!(reserve(&gate, id, None), Ok(true));
        let settled = end(&gate, id, ReservationEnd::Settle(40)).unwrap();
        let rows = settled.rows().map(|row| (row.source, row.outcome.remaining));
        let [stored, local] = expected;
        let expected_rows = [(Source::Store, stored), (Source::LocalFallback, local)];
        assert_eq!(rows.collect::<Vec<_>>(), expected_rows);
        end(&gate, id, ReservationEnd::Settle(40)).expect("a repeated end is the same");
        assert_eq!(left(&gate, NOW_US), expected);
    }
}

#[test]
fn an_end_that_the_store_did_not_hear_is_repeated_there() {
    let gate = half_down();
    assert_eq!(reserve(&gate, "1", None), Ok(true));
    gate.store().set_down(true);
    assert!(matches!(
        end(&gate, "1", ReservationEnd::Settle(40)),
        Err(ReservationError::Undecided(_))
    ));
    gate.store().set_down(false);
    let other = end(&gate, "1", ReservationEnd::Cancel).unwrap_err();
    assert_eq!(other, ReservationError::Ended);
    assert_eq!(left(&gate, NOW_US), [60, 60], "the first end counts for both parts");
}
