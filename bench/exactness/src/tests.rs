use crate::promise::{Answer, Keeper, Limit, Played, Promise, judge};
use crate::trace::{START_US, traces};

const LIMIT: Limit = Limit { count: 10, window_us: 1_000_000 };

fn played(at_us: u64, admitted: bool) -> Played {
    let answer = Answer { admitted, ..Answer::default() };
    Played { from_us: START_US + at_us, to_us: START_US + at_us, cost: 1, answer }
}

#[test]
fn a_limiter_that_admits_all_is_beyond_and_one_that_refuses_all_is_below() {
    for promise in [
        Promise::Bucket,
        Promise::Log,
        Promise::Aligned,
        Promise::FromFirst,
        Promise::SlidingCounter,
    ] {
        let all: Vec<Played> = (0..15).map(|_| played(0, true)).collect();
        assert_eq!(judge(promise, LIMIT, 1, &all).beyond, 5, "{promise:?}");
        let none: Vec<Played> = (0..15).map(|_| played(0, false)).collect();
        assert_eq!(judge(promise, LIMIT, 1, &none).below, 15, "{promise:?}");
    }
}

#[test]
fn promises_differ_where_they_should() {
    let mut keepers = [Promise::Bucket, Promise::Log, Promise::Aligned, Promise::FromFirst]
        .map(|promise| Keeper::new(promise, LIMIT));
    for keeper in &mut keepers {
        (0..10).for_each(|_| keeper.note(START_US + 900_000, 1, true));
    }
    let admits = |us: u64| keepers.each_ref().map(|keeper| keeper.admits(START_US + us, 1));
    assert_eq!(admits(900_000), [false, false, false, false]);
    assert_eq!(admits(1_000_000), [true, false, true, false]);
    assert_eq!(admits(1_900_000), [true, true, true, true]);
    let waits = keepers.each_ref().map(|keeper| keeper.wait_us(START_US + 900_000, 1));
    assert_eq!(waits, [Some(100_000), Some(1_000_000), Some(100_000), Some(1_000_000)]);
    assert_eq!(keepers[0].remaining(START_US + 1_250_000), 3);
    assert_eq!(keepers[0].wait_us(START_US, 11), None);
}

#[test]
fn a_wrong_wait_and_a_wrong_remaining_are_found() {
    let mut run: Vec<Played> = (0..10).map(|_| played(0, true)).collect();
    for (told_us, remaining) in [(100_000, 0), (99_999, 0), (101_001, 1)] {
        let mut one = played(0, false);
        one.answer =
            Answer { admitted: false, retry_us: Some(told_us), remaining: Some(remaining) };
        run.push(one);
    }
    let counts = judge(Promise::Bucket, LIMIT, 1_000, &run);
    assert_eq!((counts.retry, counts.remaining), ((2, 3), (1, 3)));
}

/// A decision that may have been right at some possible instant is not counted as wrong.
#[test]
fn what_may_have_been_right_does_not_count() {
    let mut run: Vec<Played> = (0..10).map(|_| played(0, true)).collect();
    let unclear = |admitted| Played {
        from_us: START_US + 99_000,
        to_us: START_US + 101_000,
        ..played(0, admitted)
    };
    for admitted in [true, false] {
        run.truncate(10);
        run.push(unclear(admitted));
        let counts = judge(Promise::Bucket, LIMIT, 1, &run);
        assert_eq!((counts.beyond, counts.below), (0, 0));
    }
}

#[test]
fn traces_are_in_the_order_of_true_time() {
    for trace in traces() {
        assert!(trace.steps.is_sorted_by_key(|step| step.at_us), "{}", trace.name);
    }
}
