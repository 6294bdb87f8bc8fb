use crate::fixture::{GateFixture, NOW_US, check, facts, gate, rows};
use tollgate::engine::{
    GateBuffers, ReservationEnd, ReservationError, SettledReservation, Verdict,
};

const SECOND: u64 = 1_000_000;

fn reserve<'g>(
    desk: &'g GateFixture,
    id: &str,
    cost: u64,
    ttl_us: Option<u64>,
) -> Result<(Verdict<'g>, Option<u64>), ReservationError> {
    let facts = facts(desk, &[("user", "a")]);
    desk.gate
        .reserve(&desk.rules, NOW_US, id, &facts, cost, ttl_us, &mut GateBuffers::default())
        .now()
}

fn remaining(settled: &SettledReservation) -> Vec<u64> {
    settled.rows().map(|row| row.outcome.remaining).collect()
}

fn tokens() -> GateFixture {
    gate("  - {name: l, key: [user], rate: 10/min, algorithm: fixed-window}\n")
}

#[test]
fn settling_to_less_returns_the_rest_and_to_more_leaves_a_debt() {
    let gate = tokens();
    reserve(&gate, "less", 6, None).unwrap();
    assert_eq!(
        remaining(&gate.gate.end(NOW_US, "less", ReservationEnd::Settle(2)).now().unwrap()),
        [8]
    );
    reserve(&gate, "more", 1, None).unwrap();
    let settled = gate.gate.end(NOW_US, "more", ReservationEnd::Settle(100)).now().unwrap();
    assert_eq!((settled.charged, remaining(&settled)), (100, vec![0]));
    assert!(!check(&gate, &[("user", "a")], 1).allowed);
    assert_eq!(
        gate.gate.end(NOW_US, "more", ReservationEnd::Settle(1 << 32)).now().unwrap_err(),
        ReservationError::CostTooLarge
    );
}

#[test]
fn a_repeated_call_answers_alike_and_another_one_conflicts() {
    let gate = tokens();
    reserve(&gate, "r", 3, None).unwrap();
    assert_eq!(reserve(&gate, "r", 1, None).unwrap_err(), ReservationError::Taken);
    let first = gate.gate.end(NOW_US, "r", ReservationEnd::Cancel).now().unwrap();
    check(&gate, &[("user", "a")], 4);
    let again = gate.gate.end(NOW_US + SECOND, "r", ReservationEnd::Cancel).now().unwrap();
    assert_eq!((first.charged, remaining(&first)), (0, vec![10]));
    assert_eq!(remaining(&again), [10], "the answer of the first call, not one of now");
    assert_eq!(
        gate.gate.end(NOW_US, "r", ReservationEnd::Settle(0)).now().unwrap_err(),
        ReservationError::Ended
    );
}

#[test]
fn expiry_keeps_the_charge_and_frees_slots() {
    let gate = gate(concat!(
        "  - {name: l, key: [user], rate: 10/h, algorithm: gcra}\n",
        "  - {name: slots, key: [user], algorithm: concurrency, rate: 2, ttl: 5s}\n",
    ));
    let (verdict, ttl_us) = reserve(&gate, "r", 2, None).unwrap();
    assert_eq!(rows(&verdict), [("l", true, 8), ("slots", true, 0)]);
    assert_eq!(ttl_us, Some(5 * SECOND), "the slots' own time to live");
    let facts = facts(&gate, &[("user", "a")]);
    let late =
        |us| gate.gate.peek(&gate.rules, NOW_US + us, &facts, 1, &mut GateBuffers::default()).now();
    assert_eq!(rows(&late(5 * SECOND - 1))[1], ("slots", false, 0));
    assert_eq!(rows(&late(5 * SECOND)), [("l", true, 8), ("slots", true, 2)]);
    let end = gate.gate.end(NOW_US + 5 * SECOND, "r", ReservationEnd::Cancel).now();
    assert_eq!(end.unwrap_err(), ReservationError::Unknown);
}

#[test]
fn settling_frees_the_slots_and_a_given_ttl_holds_for_them() {
    let gate = gate("  - {name: slots, key: [user], algorithm: concurrency, rate: 1, ttl: 5s}\n");
    let (_, ttl_us) = reserve(&gate, "r", 1, Some(60 * SECOND)).unwrap();
    assert_eq!(ttl_us, Some(60 * SECOND));
    let facts = facts(&gate, &[("user", "a")]);
    let late = gate
        .gate
        .peek(&gate.rules, NOW_US + 59 * SECOND, &facts, 1, &mut GateBuffers::default())
        .now();
    assert!(!late.allowed, "held beyond the limit's own ttl");
    assert_eq!(
        remaining(&gate.gate.end(NOW_US + SECOND, "r", ReservationEnd::Settle(7)).now().unwrap()),
        [1]
    );
}

#[test]
fn a_refused_reserve_keeps_nothing() {
    let gate = tokens();
    let (verdict, ttl_us) = reserve(&gate, "r", 11, None).unwrap();
    assert_eq!((verdict.allowed, ttl_us), (false, None));
    assert_eq!(
        gate.gate.end(NOW_US, "r", ReservationEnd::Cancel).now().unwrap_err(),
        ReservationError::Unknown
    );
}

#[test]
fn an_estimate_is_settled_with_the_figure_itself() {
    let gate = gate(concat!(
        "  - name: tokens\n    key: [user]\n    rate: 1000/h\n    algorithm: fixed-window\n",
        "    cost: {estimate: 500, response: {json: usage.total_tokens}}\n",
    ));
    assert_eq!(rows(&reserve(&gate, "r", 1, None).unwrap().0), [("tokens", true, 500)]);
    assert_eq!(
        remaining(&gate.gate.end(NOW_US, "r", ReservationEnd::Settle(320)).now().unwrap()),
        [680]
    );
}

#[test]
fn a_free_reservation_can_be_settled_with_a_cost() {
    let gate = tokens();
    reserve(&gate, "r", 0, None).unwrap();
    assert_eq!(
        remaining(&gate.gate.end(NOW_US, "r", ReservationEnd::Settle(4)).now().unwrap()),
        [6]
    );
}

#[test]
fn slots_never_outlive_their_reservation() {
    let gate = gate("  - {name: slots, key: [user], algorithm: concurrency, rate: 1, ttl: 2h}\n");
    let (_, ttl_us) = reserve(&gate, "r", 1, None).unwrap();
    assert_eq!(ttl_us, Some(3_600 * SECOND), "an hour at most");
    let facts = facts(&gate, &[("user", "a")]);
    let late = gate
        .gate
        .peek(&gate.rules, NOW_US + 3_600 * SECOND, &facts, 1, &mut GateBuffers::default())
        .now();
    assert!(late.allowed, "expiry frees the slot");
}

#[test]
fn a_shadow_limit_without_its_key_settles_nothing() {
    let gate =
        gate("  - {name: trial, key: [org], rate: 5/min, mode: shadow, on_missing: refuse}\n");
    let (verdict, _) = reserve(&gate, "r", 0, None).unwrap();
    assert!(verdict.allowed);
    assert!(gate.gate.end(NOW_US, "r", ReservationEnd::Settle(9)).now().unwrap().rows().len() == 0);
}

#[test]
fn reservations_are_bounded_in_bytes_and_a_full_book_takes_nothing() {
    let gate = tokens();
    let long = "x".repeat(4_000);
    let facts = facts(&gate, &[("user", &long)]);
    let mut work = GateBuffers::default();
    let mut reserve = |n: usize| {
        gate.gate
            .reserve(&gate.rules, NOW_US, &n.to_string(), &facts, 0, None, &mut work)
            .now()
            .map(|_| ())
    };
    let opened = (0..).take_while(|n| reserve(*n).is_ok()).count();
    assert!((10_000..17_000).contains(&opened), "{opened} of some 4 KB each");
    assert_eq!(reserve(opened).unwrap_err(), ReservationError::Full);
    let late = gate
        .gate
        .reserve(
            &gate.rules,
            NOW_US + 30 * SECOND,
            "late",
            &facts,
            0,
            None,
            &mut GateBuffers::default(),
        )
        .now();
    assert!(late.is_ok(), "expiry makes room");
}

#[test]
fn a_ttl_outside_its_range_is_refused() {
    for ttl_us in [0, 999, 3_600 * SECOND + 1] {
        let refused = reserve(&tokens(), "r", 1, Some(ttl_us)).map(|_| ()).unwrap_err();
        assert_eq!(refused, ReservationError::TtlOutOfRange);
    }
}

#[test]
fn ended_reservations_make_room_for_new_ones() {
    let gate = tokens();
    let long = "x".repeat(4_000);
    let facts = facts(&gate, &[("user", &long)]);
    let mut work = GateBuffers::default();
    for n in 0..40_000 {
        let id = n.to_string();
        let reserved =
            gate.gate.reserve(&gate.rules, NOW_US, &id, &facts, 0, None, &mut work).now();
        assert!(reserved.is_ok(), "number {n}");
        gate.gate.end(NOW_US, &id, ReservationEnd::Cancel).now().unwrap();
    }
    assert!(
        gate.gate.end(NOW_US, "39999", ReservationEnd::Cancel).now().is_ok(),
        "the last are still known"
    );
    let forgotten = gate.gate.end(NOW_US, "0", ReservationEnd::Cancel).now().unwrap_err();
    assert_eq!(forgotten, ReservationError::Unknown);
}

#[test]
fn slots_of_several_limits_are_held_equally_long() {
    let gate = gate(concat!(
        "  - {name: short, key: [user], algorithm: concurrency, rate: 1, ttl: 5s}\n",
        "  - {name: long, key: [user], algorithm: concurrency, rate: 1, ttl: 60s}\n",
    ));
    let (_, ttl_us) = reserve(&gate, "r", 1, None).unwrap();
    assert_eq!(ttl_us, Some(60 * SECOND));
    let facts = facts(&gate, &[("user", "a")]);
    let late = gate
        .gate
        .peek(&gate.rules, NOW_US + 59 * SECOND, &facts, 1, &mut GateBuffers::default())
        .now();
    assert_eq!(rows(&late), [("short", false, 0), ("long", false, 0)]);
}

#[test]
fn threads_that_end_one_reservation_at_once_have_one_answer() {
    let gate = tokens();
    for round in 0..200 {
        let id = round.to_string();
        reserve(&gate, &id, 0, None).unwrap();
        let ended = std::thread::scope(|scope| {
            let end = || gate.gate.end(NOW_US, &id, ReservationEnd::Settle(0)).now().is_ok();
            let threads = [scope.spawn(end), scope.spawn(end), scope.spawn(end)];
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(ended, [true; 3]);
    }
}

#[tokio::test]
async fn ending_without_a_future_works_within_a_task_too() {
    let gate = tokens();
    for n in 0..300 {
        let id = n.to_string();
        reserve(&gate, &id, 0, None).unwrap();
        gate.gate.end(NOW_US, &id, ReservationEnd::Cancel).now().unwrap();
    }
}

#[test]
fn what_a_shared_cell_took_is_not_charged_twice() {
    use tollgate::MemoryStore;
    use tollgate::engine::Gate;
    use tollgate_store::memory::MemoryOptions;
    let store = MemoryStore::new(MemoryOptions::default().max_bytes(0).shards(1));
    let limits = "  - {name: l, key: [user], rate: 10/min, algorithm: fixed-window}\n";
    let gate = Gate::new(crate::fixture::setup(limits), store).unwrap();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let mut work = GateBuffers::default();
    gate.reserve(&rules, NOW_US, "r", &facts, 4, None, &mut work).now().unwrap();
    gate.end(NOW_US, "r", ReservationEnd::Settle(4)).now().unwrap();
    let peek = gate.peek(&rules, NOW_US, &facts, 1, &mut work).now();
    assert!(peek.rows[0].outcome.remaining >= 6, "{:?}", peek.rows[0].outcome);
}

#[test]
fn a_call_that_ended_a_reservation_can_be_repeated_when_its_time_has_passed() {
    let gate = tokens();
    reserve(&gate, "r", 3, Some(SECOND)).unwrap();
    gate.gate.end(NOW_US, "r", ReservationEnd::Settle(2)).now().unwrap();
    let late_us = NOW_US + 60 * SECOND;
    assert_eq!(
        remaining(&gate.gate.end(late_us, "r", ReservationEnd::Settle(2)).now().unwrap()),
        [8]
    );
    let other = gate.gate.end(late_us, "r", ReservationEnd::Cancel).now().unwrap_err();
    assert_eq!(other, ReservationError::Ended);
    let forgotten =
        gate.gate.end(NOW_US + 601 * SECOND, "r", ReservationEnd::Settle(2)).now().unwrap_err();
    assert_eq!(forgotten, ReservationError::Unknown);
}
