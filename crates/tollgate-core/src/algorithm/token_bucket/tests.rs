use super::*;
use crate::{
    Rate,
    algorithm::{DatedTat, Gcra},
};

const SECOND_US: u64 = 1_000_000;

fn limit(count: u64, period_us: u64, burst: u64) -> TokenBucket {
    let rate = Rate::try_new(count, period_us).expect("a rate in range");
    TokenBucket::try_new(rate, Some(burst)).expect("a burst in range")
}

fn take(limit: TokenBucket, state: &mut State, now_us: u64, cost: u64) -> Outcome {
    let outcome = limit.decide(state, now_us, cost, Intent::Take);
    if outcome.admitted {
        limit.charge(state, now_us, cost);
    }
    outcome
}

#[test]
fn a_burst_then_the_pace() {
    let (limit, mut state) = (limit(20, SECOND_US, 50), State::default());
    assert_eq!(take(limit, &mut state, 0, 50).remaining, 0);
    assert_eq!(take(limit, &mut state, 0, 1).retry_after_us, Some(50_000));
    assert_eq!(limit.decide(&state, 49_999, 1, Intent::Peek).remaining, 0);
    assert_eq!(limit.decide(&state, SECOND_US, 1, Intent::Peek).remaining, 20);
    assert_eq!(
        limit.decide(&state, 10 * SECOND_US, 1, Intent::Peek).remaining,
        50,
        "never above B"
    );
    assert_eq!(limit.window_us(), Some(2_500_000));
}

#[test]
fn parts_of_a_token_are_kept() {
    let (limit, mut state) = (limit(7, 60 * SECOND_US, 7), State::default());
    assert!(take(limit, &mut state, 0, 7).admitted);
    // After a minute, seven whole tokens have been refilled, however often the client took tokens
    // in between.
    let mut taken = 0;
    for now_us in (0..=60 * SECOND_US).step_by(1_000_000) {
        taken += u64::from(take(limit, &mut state, now_us, 1).admitted);
    }
    assert_eq!(taken, 7);
}

#[test]
fn it_decides_as_gcra_does_even_after_a_change_of_rate() {
    let rate = |count| Rate::try_new(count, SECOND_US).expect("a rate in range");
    let pair = |count| {
        let gcra = Gcra::try_new(rate(count), None).expect("a burst in range");
        (limit(count, SECOND_US, count), gcra)
    };
    let (mut state, mut tat) = (State::default(), DatedTat::default());
    let steps =
        [(0, 7, 3), (1, 7, 4), (2, 11, 2), (90_909, 11, 8), (90_910, 7, 1), (500_000, 3, 1)];
    for (now_us, count, cost) in steps {
        let (bucket, gcra) = pair(count);
        let expected = gcra.decide(&tat, now_us, cost, Intent::Take);
        assert_eq!(take(bucket, &mut state, now_us, cost), expected, "at {now_us}");
        if expected.admitted {
            gcra.charge(&mut tat, now_us, cost);
        }
        assert_eq!(state.full, tat.tat);
    }
}

#[test]
fn a_give_back_returns_what_time_has_not() {
    let (limit, mut state) = (limit(1, SECOND_US, 5), State::default());
    let receipt = limit.charge(&mut state, 0, 4);
    limit.give_back(&mut state, SECOND_US, 4, &receipt);
    assert_eq!(limit.decide(&state, SECOND_US, 1, Intent::Peek).remaining, 5);
    limit.charge(&mut state, SECOND_US, 3);
    limit.give_back(&mut state, 5 * SECOND_US, 1, &receipt);
    assert_eq!(limit.decide(&state, SECOND_US, 1, Intent::Peek).remaining, 2);
}

/// Unlike a single timestamp, this state knows the latest instant counted.
#[test]
fn a_give_back_behind_the_latest_charge_counts_from_it() {
    let (limit, mut state) = (limit(1, SECOND_US, 5), State::default());
    let receipt = limit.charge(&mut state, 0, 1);
    limit.charge(&mut state, 10 * SECOND_US, 5);
    limit.give_back(&mut state, 0, 1, &receipt);
    let refused = limit.decide(&state, 10 * SECOND_US, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(SECOND_US), "time returned that token long ago");
}

#[test]
fn a_clock_that_steps_back_brings_no_tokens_and_loses_none() {
    let (limit, mut state) = (limit(1, SECOND_US, 5), State::default());
    limit.charge(&mut state, 9 * SECOND_US, 3);
    let outcome = limit.decide(&state, 4 * SECOND_US, 3, Intent::Take);
    assert_eq!((outcome.admitted, outcome.remaining), (false, 2));
    assert_eq!(outcome.retry_after_us, Some(6 * SECOND_US), "from the unclamped now");
    let receipt = limit.charge(&mut state, 4 * SECOND_US, 2);
    assert_eq!(receipt.at_us, 9 * SECOND_US);
    assert_eq!(limit.idle_at_us(&state), 14 * SECOND_US);
}

#[test]
fn a_leap_is_taken_back_with_all_that_was_owed() {
    let (limit, mut state) = (limit(1, SECOND_US, 5), State::default());
    limit.charge(&mut state, 3_600 * SECOND_US, 7);
    assert!(limit.redate(&mut state, 10 * SECOND_US));
    let refused = limit.decide(&state, 10 * SECOND_US, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(3 * SECOND_US), "two are a debt");
    assert!(!limit.redate(&mut state, 10 * SECOND_US), "once is enough");
}
