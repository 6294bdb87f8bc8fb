use super::*;
use crate::Rate;

const MINUTE_US: u64 = 60_000_000;

fn limit(count: u64, period_us: u64) -> FixedWindow {
    FixedWindow::new(Rate::try_new(count, period_us).expect("a rate in range"))
}

fn take(limit: FixedWindow, state: &mut State, now_us: u64, cost: u64) -> Outcome {
    let outcome = limit.decide(state, now_us, cost, Intent::Take);
    if outcome.admitted {
        limit.charge(state, now_us, cost);
    }
    outcome
}

#[test]
fn seven_a_minute_are_seven_and_the_rest_waits_for_the_next() {
    let (limit, mut state) = (limit(7, MINUTE_US), State::default());
    for left in (0..7).rev() {
        let outcome = take(limit, &mut state, 20_000_000, 1);
        assert!(outcome.admitted);
        assert_eq!((outcome.remaining, outcome.reset_after_us), (left, 40_000_000));
    }
    let refused = take(limit, &mut state, 20_000_001, 1);
    assert!(!refused.admitted);
    assert_eq!(refused.retry_after_us, Some(39_999_999));
    assert!(!take(limit, &mut state, MINUTE_US - 1, 1).admitted);
    assert_eq!(take(limit, &mut state, MINUTE_US, 1).remaining, 6);
}

#[test]
fn twice_the_limit_passes_around_a_boundary_and_no_more() {
    let (limit, mut state) = (limit(100, MINUTE_US), State::default());
    assert!(take(limit, &mut state, MINUTE_US - 1, 100).admitted);
    assert!(take(limit, &mut state, MINUTE_US, 100).admitted);
    assert!(!take(limit, &mut state, 2 * MINUTE_US - 1, 1).admitted);
}

#[test]
fn the_reset_is_the_end_of_the_window_used_or_not() {
    let outcome = limit(5, MINUTE_US).decide(&State::default(), 1, 1, Intent::Peek);
    assert_eq!(outcome.reset_after_us, MINUTE_US - 1);
    assert_eq!(outcome.more_after_us, None, "it is full");
}

#[test]
fn a_give_back_is_for_its_own_window() {
    let (limit, mut state) = (limit(5, MINUTE_US), State::default());
    let receipt = limit.charge(&mut state, 10, 5);
    limit.give_back(&mut state, MINUTE_US - 1, 2, &receipt);
    assert_eq!(state.count, 3);
    limit.give_back(&mut state, MINUTE_US, 2, &receipt);
    assert_eq!(state.count, 3, "the window is over, whether or not anyone has counted in the next");
    limit.charge(&mut state, MINUTE_US, 4);
    limit.give_back(&mut state, MINUTE_US, 3, &receipt);
    assert_eq!(state.count, 4);
}

#[test]
fn another_count_keeps_what_was_counted() {
    let (free, pro, mut state) = (limit(5, MINUTE_US), limit(50, MINUTE_US), State::default());
    assert!(take(free, &mut state, 0, 5).admitted);
    assert_eq!(take(pro, &mut state, 0, 10).remaining, 35);
    let back = free.decide(&state, 0, 1, Intent::Peek);
    assert_eq!((back.admitted, back.remaining), (false, 0));
}

#[test]
fn a_clock_that_steps_back_stays_in_the_states_window() {
    let (limit, mut state) = (limit(5, MINUTE_US), State::default());
    limit.charge(&mut state, MINUTE_US + 10, 4);
    let outcome = limit.decide(&state, MINUTE_US - 5, 2, Intent::Peek);
    assert_eq!((outcome.admitted, outcome.remaining), (false, 1));
    assert_eq!(outcome.retry_after_us, Some(MINUTE_US + 5));
    let receipt = limit.charge(&mut state, MINUTE_US - 5, 1);
    assert_eq!(receipt.at_us, MINUTE_US, "counted at the start of the state's window");
    assert_eq!(state, State { index: 1, count: 5 });
}

#[test]
fn a_leap_ahead_is_taken_to_be_one_window() {
    let (limit, mut state) = (limit(5, MINUTE_US), State::default());
    limit.charge(&mut state, 1_000 * MINUTE_US, 5);
    assert!(limit.redate(&mut state, 30_000_000));
    assert_eq!(state, State { index: 1, count: 5 });
    assert!(!limit.redate(&mut state, 30_000_000));
    let refused = limit.decide(&state, 30_000_000, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(90_000_000));
    assert!(limit.decide(&state, 120_000_000, 1, Intent::Take).admitted);
}

#[test]
fn a_debt_is_over_with_the_window() {
    let (limit, mut state) = (limit(5, MINUTE_US), State::default());
    limit.charge(&mut state, 0, u64::MAX);
    assert_eq!(state.count, MAX_US);
    assert_eq!(limit.decide(&state, 0, 1, Intent::Peek).retry_after_us, Some(MINUTE_US));
    assert_eq!(limit.idle_at_us(&state), MINUTE_US);
}
