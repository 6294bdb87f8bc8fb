use super::*;
use crate::algorithm::Tat;
use crate::{MAX_US, Rate};

const SECOND_US: u64 = 1_000_000;

fn limit(count: u64, period_us: u64, burst: u64) -> Gcra {
    let rate = Rate::try_new(count, period_us).expect("a rate in range");
    Gcra::try_new(rate, Some(burst)).expect("a burst in range")
}

fn take(limit: Gcra, state: &mut DatedTat, now_us: u64, cost: u64) -> Outcome {
    let outcome = limit.decide(state, now_us, cost, Intent::Take);
    if outcome.admitted {
        limit.charge(state, now_us, cost);
    }
    outcome
}

/// Returns admitted, limit, remaining, retry and reset. The times are in milliseconds, which are
/// exact in every row.
fn row(outcome: Outcome) -> (bool, u64, u64, Option<u64>, u64) {
    let Outcome { admitted, limit, remaining, retry_after_us, reset_after_us, .. } = outcome;
    (admitted, limit, remaining, retry_after_us.map(|us| us / 1_000), reset_after_us / 1_000)
}

#[test]
fn the_throttle_table() {
    let mut state = DatedTat::default();
    let a = limit(30, 60 * SECOND_US, 16);
    assert_eq!(row(take(a, &mut state, 0, 1)), (true, 16, 15, Some(0), 2_000), "row A");
    let (five, mut state) = (limit(1, SECOND_US, 5), DatedTat::default());
    assert_eq!(row(take(five, &mut state, 0, 6)), (false, 5, 5, None, 0), "row B");
    for n in 1..=5 {
        assert_eq!(
            row(take(five, &mut state, 0, 1)),
            (true, 5, 5 - n, Some(0), n * 1_000),
            "row C"
        );
    }
    assert_eq!(row(take(five, &mut state, 0, 1)), (false, 5, 0, Some(1_000), 5_000), "row D");
    let rows = [
        (3_000, 2, 3_000),
        (3_100, 1, 3_900),
        (4_000, 1, 4_000),
        (8_000, 4, 1_000),
        (9_500, 4, 1_000),
    ];
    for (now_ms, remaining, reset_ms) in rows {
        let outcome = take(five, &mut state, now_ms * 1_000, 1);
        assert_eq!(row(outcome), (true, 5, remaining, Some(0), reset_ms), "row E at {now_ms} ms");
    }
    let now_us = 9_500_000;
    assert_eq!(row(take(five, &mut state, now_us, 0)), (true, 5, 4, Some(0), 1_000), "row F");
    assert_eq!(row(take(five, &mut state, now_us, 2)), (true, 5, 2, Some(0), 3_000));
    assert_eq!(row(take(five, &mut state, now_us, 5)), (false, 5, 2, Some(3_000), 3_000));
}

/// Over a thousand minutes, a truncated interval would admit too much and a rounded-up one too
/// little.
#[test]
fn seven_a_minute_is_exactly_that() {
    let (limit, mut state) = (limit(7, 60 * SECOND_US, 7), DatedTat::default());
    assert_eq!(limit.bucket().scale(), 7);
    assert!(take(limit, &mut state, 0, 7).admitted);
    for n in 1..=7_000 {
        let due_us = (n * 60 * SECOND_US).div_ceil(7);
        assert!(!take(limit, &mut state, due_us - 1, 1).admitted, "unit {n} was early");
        assert!(take(limit, &mut state, due_us, 1).admitted, "unit {n} was late");
    }
}

#[test]
fn faster_than_one_a_microsecond() {
    let (limit, mut state) = (limit(1_000_007, SECOND_US, 1_000_007), DatedTat::default());
    assert!(take(limit, &mut state, 0, 1_000_007).admitted);
    assert_eq!(take(limit, &mut state, 0, 1).retry_after_us, Some(1));
    assert_eq!(limit.decide(&state, 1, 1, Intent::Peek).remaining, 1);
    assert_eq!(limit.decide(&state, 142_858, 1, Intent::Peek).remaining, 142_859);
}

#[test]
fn the_largest_rate_over_the_longest_period() {
    let period_us = 366 * 86_400 * SECOND_US;
    let (limit, mut state) = (limit(4_294_967_295, period_us, 4_294_967_295), DatedTat::default());
    assert!(take(limit, &mut state, 0, 4_294_967_294).admitted);
    assert_eq!(take(limit, &mut state, 0, 1).remaining, 0);
    assert_eq!(take(limit, &mut state, 0, 1).retry_after_us, Some(7_363), "7362.66 us each");
    assert_eq!(take(limit, &mut state, 0, 4_294_967_295).retry_after_us, Some(period_us));
}

#[test]
fn a_give_back_returns_what_time_has_not() {
    let (limit, mut state) = (limit(1, SECOND_US, 5), DatedTat::default());
    let receipt = limit.charge(&mut state, 0, 5);
    limit.give_back(&mut state, 2 * SECOND_US, 5, &receipt);
    assert_eq!(state.tat.us, 2 * SECOND_US, "two seconds were returned by waiting");
    assert_eq!(limit.decide(&state, 2 * SECOND_US, 1, Intent::Peek).remaining, 5);
    let receipt = limit.charge(&mut state, 3 * SECOND_US, 2);
    limit.charge(&mut state, 3 * SECOND_US, 1);
    limit.give_back(&mut state, 5 * SECOND_US, 2, &receipt);
    assert_eq!(
        state.tat.us,
        6 * SECOND_US,
        "two seconds later nothing of two units is left to return"
    );
    let receipt = limit.charge(&mut state, 6 * SECOND_US, 3);
    limit.give_back(&mut state, 5 * SECOND_US, 1, &receipt);
    assert_eq!(
        state.tat.us,
        8 * SECOND_US,
        "a clock behind the charge returns the units and no more"
    );
}

#[test]
fn another_count_keeps_the_time_owed_rounded_up() {
    let (seven, three) = (limit(7, SECOND_US, 7), limit(3, SECOND_US, 3));
    let mut state = DatedTat::default();
    take(seven, &mut state, 0, 1);
    assert_eq!(state.tat, Tat { us: 142_857, fraction: 1, count: 7 });
    assert_eq!(three.decide(&state, 0, 0, Intent::Peek).reset_after_us, 142_858);
    assert_eq!(
        seven.decide(&state, 0, 6, Intent::Take).retry_after_us,
        Some(0),
        "reading rounds nothing"
    );
    three.charge(&mut state, 0, 1);
    assert_eq!(
        state.tat,
        Tat { us: 476_191, fraction: 1, count: 3 },
        "142858 and a third of a second"
    );
}

#[test]
fn a_give_back_of_nothing_rounds_nothing() {
    let (seven, three) = (limit(7, SECOND_US, 7), limit(3, SECOND_US, 3));
    let mut state = DatedTat::default();
    let receipt = three.charge(&mut state, 0, 1);
    seven.charge(&mut state, SECOND_US, 1);
    let before = state;
    three.give_back(&mut state, SECOND_US, 1, &receipt);
    assert_eq!(state, before, "time had already returned the units, so the state stays");
}

#[test]
fn a_charge_of_nothing_leaves_no_mark() {
    let (limit, mut state) = (limit(1, SECOND_US, 2), DatedTat::default());
    limit.charge(&mut state, 10 * SECOND_US, 0);
    assert_eq!(state, DatedTat::default(), "else a clock that stepped back would owe for nothing");
}

#[test]
fn a_clock_that_steps_back_owes_the_more() {
    let (limit, mut state) = (limit(1, SECOND_US, 2), DatedTat::default());
    limit.charge(&mut state, 10 * SECOND_US, 1);
    let refused = limit.decide(&state, 8 * SECOND_US, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(2 * SECOND_US));
    assert!(limit.decide(&state, 10 * SECOND_US, 1, Intent::Take).admitted);
}

#[test]
fn a_debt_is_waited_for_and_ends_with_time() {
    let (limit, mut state) = (limit(1, SECOND_US, 2), DatedTat::default());
    limit.charge(&mut state, 0, 10);
    let refused = limit.decide(&state, 0, 1, Intent::Take);
    assert_eq!((refused.remaining, refused.retry_after_us), (0, Some(9 * SECOND_US)));
    limit.charge(&mut state, 0, u64::MAX);
    assert_eq!(state.tat, Tat { us: MAX_US, fraction: 0, count: 0 });
}

#[test]
fn a_leap_is_taken_back_and_the_bucket_counts_as_full() {
    let (limit, mut state) = (limit(1, SECOND_US, 10), DatedTat::default());
    take(limit, &mut state, 3_600 * SECOND_US, 1);
    assert!(!limit.redate(&mut state, 3_581 * SECOND_US), "a step of ten seconds is waited out");
    assert!(limit.redate(&mut state, 3_580 * SECOND_US));
    let refused = limit.decide(&state, 3_580 * SECOND_US, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(SECOND_US));
}

#[test]
fn a_debt_is_told_from_a_leap() {
    let (limit, mut state) = (limit(1, SECOND_US, 10), DatedTat::default());
    limit.charge(&mut state, 100 * SECOND_US, 3_600);
    assert!(!limit.redate(&mut state, 100 * SECOND_US), "an hour is owed");
    assert!(!limit.redate(&mut state, 90 * SECOND_US));
    assert!(limit.redate(&mut state, 80 * SECOND_US), "the clock stepped back");
    assert_eq!(limit.idle_at_us(&state), 3_680 * SECOND_US, "an hour is still owed");
}

/// Nodes with an old and a new file share state for a while, and so do tiers.
#[test]
fn a_smaller_burst_forgives_nothing() {
    let (large, small, mut state) =
        (limit(1, SECOND_US, 100), limit(1, SECOND_US, 10), DatedTat::default());
    take(large, &mut state, 0, 100);
    assert!(!small.redate(&mut state, 0));
    small.charge(&mut state, 0, 1);
    assert!(!small.redate(&mut state, 0));
    assert_eq!(large.decide(&state, SECOND_US, 1, Intent::Take).remaining, 0);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let rate = Rate::try_new(1, 366 * 86_400 * SECOND_US).expect("a rate in range");
    assert_eq!(Gcra::try_new(rate, Some(100)), Err(InvalidParams::HorizonTooFar));
    assert!(Gcra::try_new(rate, Some(99)).is_ok());
    assert_eq!(Gcra::try_new(rate, Some(0)), Err(InvalidParams::ZeroBurst));
    assert_eq!(Gcra::try_new(rate, Some(1 << 32)), Err(InvalidParams::CountTooLarge));
}
