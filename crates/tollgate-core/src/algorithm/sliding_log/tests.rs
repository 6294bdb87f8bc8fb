use super::*;
use crate::Rate;

const SECOND_US: u64 = 1_000_000;

fn limit(count: u64, period_us: u64) -> SlidingLog {
    SlidingLog::new(Rate::try_new(count, period_us).expect("a rate in range"))
}

fn take(limit: SlidingLog, state: &mut ExpiryLog, now_us: u64, cost: u64) -> Outcome {
    let outcome = limit.decide(state, now_us, cost, Intent::Take);
    if outcome.admitted {
        limit.charge(state, now_us, cost);
    }
    outcome
}

#[test]
fn three_a_millisecond_in_any_millisecond() {
    let (limit, mut state) = (limit(3, 1_000), ExpiryLog::default());
    for now_us in [0, 400, 900] {
        assert!(take(limit, &mut state, now_us, 1).admitted);
    }
    let refused = take(limit, &mut state, 950, 1);
    assert_eq!(
        refused.retry_after_us,
        Some(50),
        "an entry counts while it is less than a window old"
    );
    assert!(!take(limit, &mut state, 999, 1).admitted);
    assert!(take(limit, &mut state, 1_000, 1).admitted);
    assert_eq!(take(limit, &mut state, 1_001, 1).retry_after_us, Some(399));
}

#[test]
fn a_cost_waits_for_as_many_entries_as_it_needs() {
    let (limit, mut state) = (limit(10, SECOND_US), ExpiryLog::default());
    for (now_us, cost) in [(0, 2), (100, 3), (200, 5)] {
        assert!(take(limit, &mut state, now_us, cost).admitted);
    }
    let wait = |cost| limit.decide(&state, 300, cost, Intent::Take).retry_after_us;
    assert_eq!(wait(2), Some(SECOND_US - 300));
    assert_eq!(wait(3), Some(SECOND_US - 200));
    assert_eq!(wait(5), Some(SECOND_US - 200));
    assert_eq!(wait(6), Some(SECOND_US - 100));
    assert_eq!(wait(10), Some(SECOND_US - 100));
    assert_eq!(wait(11), None);
    let outcome = limit.decide(&state, 300, 1, Intent::Peek);
    assert_eq!(outcome.reset_after_us, SECOND_US - 100, "the newest entry's end");
    assert_eq!(outcome.more_after_us, Some(SECOND_US - 300), "the oldest entry's end");
}

#[test]
fn a_give_back_takes_its_own_entry() {
    let (limit, mut state) = (limit(10, SECOND_US), ExpiryLog::default());
    let first = limit.charge(&mut state, 0, 4);
    limit.charge(&mut state, 500_000, 6);
    limit.give_back(&mut state, 600_000, 3, &first);
    let refused = limit.decide(&state, 600_000, 4, Intent::Take);
    assert_eq!((refused.remaining, refused.retry_after_us), (3, Some(400_000)));
    limit.give_back(&mut state, SECOND_US, 1, &first);
    assert_eq!(state.len(), 2, "time has returned the rest already");
    assert_eq!(limit.decide(&state, SECOND_US, 1, Intent::Peek).remaining, 4);
}

#[test]
fn another_count_keeps_the_entries() {
    let (free, pro) = (limit(5, SECOND_US), limit(20, SECOND_US));
    let mut state = ExpiryLog::default();
    assert!(take(free, &mut state, 0, 5).admitted);
    assert_eq!(take(pro, &mut state, 10, 5).remaining, 10);
    let refused = free.decide(&state, 20, 1, Intent::Take);
    assert_eq!((refused.remaining, refused.retry_after_us), (0, Some(SECOND_US - 10)));
}

#[test]
fn a_clock_that_steps_back_waits_at_the_latest_entry() {
    let (limit, mut state) = (limit(3, SECOND_US), ExpiryLog::default());
    limit.charge(&mut state, 5_000_000, 3);
    let refused = limit.decide(&state, 4_900_000, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(1_100_000), "from the unclamped now");
    let receipt = limit.charge(&mut state, 4_900_000, 1);
    assert_eq!(receipt.at_us, 5_000_000);
}

#[test]
fn a_leap_ahead_is_taken_to_be_one_window() {
    let (limit, mut state) = (limit(3, SECOND_US), ExpiryLog::default());
    limit.charge(&mut state, 900_000_000, 3);
    assert!(limit.redate(&mut state, 1_000_000));
    assert!(
        state.entries().eq([(3_000_000, 3)]),
        "one window ahead it began, another later it ends"
    );
    let refused = limit.decide(&state, 1_000_000, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(2_000_000));
    assert!(limit.decide(&state, 3_000_000, 1, Intent::Take).admitted);
}

#[test]
fn joining_entries_for_memory_can_only_refuse_more() {
    let (limit, mut state) = (limit(3, SECOND_US), ExpiryLog::default());
    for now_us in [0, 100, 200] {
        limit.charge(&mut state, now_us, 1);
    }
    state.merge_two_earliest();
    assert!(state.entries().eq([(SECOND_US + 100, 2), (SECOND_US + 200, 1)]));
    assert!(!limit.decide(&state, SECOND_US, 1, Intent::Take).admitted);
    assert_eq!(limit.decide(&state, SECOND_US + 100, 1, Intent::Peek).remaining, 2);
}

#[test]
fn one_entry_holds_all_that_was_charged_at_one_instant() {
    let (limit, mut state) = (limit(100, SECOND_US), ExpiryLog::default());
    for _ in 0..50 {
        limit.charge(&mut state, 7, 1);
    }
    assert_eq!(state.len(), 1);
    limit.charge(&mut state, SECOND_US + 7, 1);
    assert_eq!(state.len(), 1, "what has ended is removed by the next charge");
}
