use super::*;
use crate::Rate;

const SECOND_US: u64 = 1_000_000;

fn limit(count: u64, burst: Option<u64>, queue: Option<u64>) -> LeakyBucket {
    let rate = Rate::try_new(count, SECOND_US).expect("a rate in range");
    LeakyBucket::try_new(rate, burst, queue).expect("numbers in range")
}

fn take(limit: LeakyBucket, state: &mut DatedTat, now_us: u64, cost: u64) -> Outcome {
    let outcome = limit.decide(state, now_us, cost, Intent::Take);
    if outcome.admitted {
        limit.charge(state, now_us, cost);
    }
    outcome
}

#[test]
fn by_default_it_is_a_strict_pace() {
    let (limit, mut state) = (limit(10, None, None), DatedTat::default());
    assert_eq!(limit.capacity(), 1);
    assert!(take(limit, &mut state, 0, 1).admitted);
    assert_eq!(take(limit, &mut state, 0, 1).retry_after_us, Some(100_000));
    assert!(!take(limit, &mut state, 99_999, 1).admitted);
    let due = take(limit, &mut state, 100_000, 1);
    assert_eq!((due.admitted, due.delay_us), (true, 0));
}

/// Requests are spaced by E, and at most Q wait. Each is delayed behind those before it; a full
/// queue refuses.
#[test]
fn a_queue_delays_into_line_and_then_refuses() {
    let (limit, mut state) = (limit(10, None, Some(3)), DatedTat::default());
    assert_eq!(limit.capacity(), 4);
    for waiting in 0..4 {
        let outcome = take(limit, &mut state, 0, 1);
        assert!(outcome.admitted);
        assert_eq!((outcome.delay_us, outcome.remaining), (waiting * 100_000, 3 - waiting));
    }
    let refused = take(limit, &mut state, 0, 1);
    assert_eq!((refused.admitted, refused.delay_us), (false, 0));
    assert_eq!(refused.retry_after_us, Some(100_000));
    assert_eq!(take(limit, &mut state, 150_000, 1).delay_us, 250_000);
}

#[test]
fn a_burst_goes_ahead_of_the_queue() {
    let (limit, mut state) = (limit(10, Some(2), Some(2)), DatedTat::default());
    let delays = [0, 1, 2, 3].map(|_| take(limit, &mut state, 0, 1).delay_us);
    assert_eq!(delays, [0, 0, 100_000, 200_000]);
}

#[test]
fn a_delay_is_rounded_up() {
    let (limit, mut state) = (limit(7, None, Some(3)), DatedTat::default());
    let delays = [0, 1, 2, 3].map(|_| take(limit, &mut state, 0, 1).delay_us);
    assert_eq!(delays, [0, 142_858, 285_715, 428_572]);
    assert_eq!(take(limit, &mut state, 0, 1).retry_after_us, Some(142_858));
}

#[test]
fn a_peek_tells_the_delay_it_would_have() {
    let (limit, mut state) = (limit(10, None, Some(3)), DatedTat::default());
    take(limit, &mut state, 0, 1);
    assert_eq!(limit.decide(&state, 0, 2, Intent::Peek).delay_us, 200_000);
    assert_eq!(limit.decide(&state, 0, 0, Intent::Peek).delay_us, 0);
}

#[test]
fn without_a_queue_a_give_back_returns_what_time_has_not() {
    let (limit, mut state) = (limit(10, Some(5), None), DatedTat::default());
    let receipt = limit.charge(&mut state, 0, 3);
    limit.charge(&mut state, 0, 1);
    limit.give_back(&mut state, 100_000, 3, &receipt);
    assert_eq!(state.tat.us, 200_000);
}

#[test]
fn with_a_queue_only_the_last_in_line_can_leave_it() {
    let (limit, mut state) = (limit(10, None, Some(5)), DatedTat::default());
    let first = limit.charge(&mut state, 0, 1);
    let last = limit.charge(&mut state, 0, 2);
    limit.give_back(&mut state, 0, 1, &first);
    assert_eq!(state.tat.us, 300_000, "those behind keep their instants");
    limit.give_back(&mut state, 50_000, 2, &last);
    assert_eq!(state.tat.us, 150_000);
    limit.give_back(&mut state, 50_000, 1, &last);
    assert_eq!(state.tat.us, 150_000, "by now it is no longer what that charge left");
}

#[test]
fn another_count_keeps_the_time_owed_rounded_up() {
    let mut state = DatedTat::default();
    take(limit(7, None, None), &mut state, 0, 1);
    let slower = limit(3, None, None).decide(&state, 0, 1, Intent::Take);
    assert_eq!(slower.retry_after_us, Some(142_858));
}
