use super::*;
use crate::Rate;

const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60_000_000;
const DAY_US: u64 = 86_400_000_000;

fn limit(count: u64, period_us: u64) -> SlidingWindow {
    SlidingWindow::new(Rate::try_new(count, period_us).expect("a rate in range"))
}

fn take(limit: SlidingWindow, state: &mut State, now_us: u64, cost: u64) -> Outcome {
    let outcome = limit.decide(state, now_us, cost, Intent::Take);
    if outcome.admitted {
        limit.charge(state, now_us, cost);
    }
    outcome
}

/// The published example: 50 a minute, 42 in the minute before, 18 in the first 15 s: 42 x 45/60 +
/// 18 = 49.5.
#[test]
fn forty_nine_and_a_half_is_within_fifty_and_one_more_is_not() {
    let (limit, mut state) = (limit(50, MINUTE_US), State { index: 0, previous: 0, current: 42 });
    let now_us = MINUTE_US + 15 * SECOND_US;
    assert!(take(limit, &mut state, now_us, 17).admitted);
    let last = take(limit, &mut state, now_us, 1);
    assert!(last.admitted, "49.5 are within 50");
    assert_eq!(last.remaining, 0);
    let refused = take(limit, &mut state, now_us, 1);
    // 42 (60 - e)/60 + 19 = 50 at e = 660/42 s.
    assert_eq!(refused.retry_after_us, Some(714_286));
    assert!(!limit.decide(&state, now_us + 714_285, 1, Intent::Take).admitted);
    assert!(limit.decide(&state, now_us + 714_286, 1, Intent::Take).admitted);
}

/// The limit is not a hard bound: an interval of one window can admit nearly twice the limit, and
/// no more.
#[test]
fn a_full_window_and_a_ramp_are_199_in_one_window() {
    let (limit, mut state) = (limit(100, SECOND_US), State::default());
    let start_us = SECOND_US - 1;
    assert!(take(limit, &mut state, start_us, 100).admitted);
    let mut admitted = 100;
    let mut now_us = start_us;
    while now_us < start_us + SECOND_US {
        match take(limit, &mut state, now_us, 1).retry_after_us {
            Some(0) => admitted += 1,
            Some(wait_us) => now_us += wait_us,
            None => unreachable!("one is within the limit"),
        }
    }
    assert_eq!(admitted, 199);
}

#[test]
fn a_million_a_day_is_exact_although_its_products_are_not_small() {
    let (limit, mut state) = (limit(1_000_000, DAY_US), State::default());
    assert!(take(limit, &mut state, DAY_US - 1, 1_000_000).admitted);
    let refused = take(limit, &mut state, DAY_US, 1);
    assert_eq!(refused.retry_after_us, Some(86_400), "a millionth of a day");
    assert!(!limit.decide(&state, DAY_US + 86_399, 1, Intent::Take).admitted);
    assert!(limit.decide(&state, DAY_US + 86_400, 1, Intent::Take).admitted);
}

#[test]
fn what_does_not_fit_beside_the_current_window_waits_into_the_next() {
    let (limit, mut state) = (limit(10, SECOND_US), State::default());
    assert!(take(limit, &mut state, 0, 10).admitted);
    // In the next window 10 (1 - e) + 4 <= 10 from e = 0.4 s on.
    let refused = take(limit, &mut state, 250_000, 4);
    assert_eq!(refused.retry_after_us, Some(750_000 + 400_000));
    assert_eq!(refused.more_after_us, Some(750_000 + 100_000));
}

#[test]
fn the_reset_names_one_instant_for_as_long_as_the_counters_stay_zero_or_not() {
    let (limit, mut state) = (limit(10, SECOND_US), State::default());
    assert_eq!(limit.decide(&state, 5, 1, Intent::Peek).reset_after_us, 0);
    for now_us in [0, 1, 500_000, 999_999] {
        let outcome = take(limit, &mut state, now_us, 1);
        assert_eq!(now_us + outcome.reset_after_us, 2 * SECOND_US);
    }
    for now_us in [1_000_000, 1_999_999] {
        let outcome = limit.decide(&state, now_us, 1, Intent::Peek);
        assert_eq!(now_us + outcome.reset_after_us, 2 * SECOND_US);
    }
    assert_eq!(limit.idle_at_us(&state), 2 * SECOND_US);
}

#[test]
fn a_give_back_follows_its_charge_into_the_previous_window_and_no_further() {
    let (limit, mut state) = (limit(10, SECOND_US), State::default());
    let receipt = limit.charge(&mut state, 0, 8);
    limit.give_back(&mut state, 999_999, 2, &receipt);
    assert_eq!((state.previous, state.current), (0, 6));
    limit.charge(&mut state, SECOND_US, 1);
    limit.give_back(&mut state, 1_999_999, 2, &receipt);
    assert_eq!((state.previous, state.current), (4, 1));
    limit.give_back(&mut state, 2_000_000, 2, &receipt);
    assert_eq!((state.previous, state.current), (4, 1), "by now it weighs nothing");
    limit.charge(&mut state, 2_000_000, 3);
    limit.give_back(&mut state, 2_000_000, 2, &receipt);
    assert_eq!((state.previous, state.current), (1, 3));
}

#[test]
fn another_count_keeps_what_was_counted() {
    let (free, pro) = (limit(10, SECOND_US), limit(100, SECOND_US));
    let mut state = State::default();
    assert!(take(free, &mut state, 0, 10).admitted);
    assert_eq!(take(pro, &mut state, 0, 40).remaining, 50);
    // 50 (1 - e) + 1 <= 10 from e = 41/50 of the next window on.
    assert_eq!(free.decide(&state, 0, 1, Intent::Peek).retry_after_us, Some(1_820_000));
}

#[test]
fn a_leap_ahead_keeps_both_counts_and_is_taken_to_be_one_window() {
    let limit = limit(10, SECOND_US);
    let mut state = State { index: 500, previous: 4, current: 6 };
    assert!(limit.redate(&mut state, 2_500_000));
    assert_eq!(state, State { index: 3, previous: 4, current: 6 });
    // At the start of that window the previous one weighs in full; a quarter of it has to fade.
    let refused = limit.decide(&state, 2_500_000, 1, Intent::Take);
    assert_eq!((refused.remaining, refused.retry_after_us), (0, Some(500_000 + 250_000)));
}

#[test]
fn a_debt_outlasts_the_window_it_was_made_in() {
    let (limit, mut state) = (limit(10, SECOND_US), State::default());
    limit.charge(&mut state, 0, 40);
    let outcome = limit.decide(&state, 0, 1, Intent::Peek);
    assert_eq!((outcome.remaining, outcome.retry_after_us), (0, Some(1_775_000)));
    limit.charge(&mut state, 0, u64::MAX);
    assert_eq!(state.current, MAX_US);
}
