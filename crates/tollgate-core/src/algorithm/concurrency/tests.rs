use super::*;

const SECOND_US: u64 = 1_000_000;

fn slots(count: u64) -> Concurrency {
    Concurrency::try_new(count, 30 * SECOND_US).expect("numbers in range")
}

#[test]
fn as_many_as_there_are_slots_at_once() {
    let (limit, mut state) = (slots(2), ExpiryLog::default());
    let first = limit.charge(&mut state, 0, 1);
    limit.charge(&mut state, 10, 1);
    let refused = limit.decide(&state, 20, 1, Intent::Take);
    assert_eq!((refused.admitted, refused.remaining), (false, 0));
    assert_eq!(
        refused.retry_after_us,
        Some(30 * SECOND_US - 20),
        "the first slot's end at the latest"
    );
    assert_eq!(refused.more_after_us, None, "when work ends is not known");
    limit.give_back(&mut state, 30, 1, &first);
    assert!(limit.decide(&state, 30, 1, Intent::Take).admitted);
}

#[test]
fn a_crash_frees_its_slot_when_the_time_to_live_is_over() {
    let (limit, mut state) = (slots(1), ExpiryLog::default());
    limit.charge(&mut state, 0, 1);
    assert!(!limit.decide(&state, 30 * SECOND_US - 1, 1, Intent::Take).admitted);
    assert!(limit.decide(&state, 30 * SECOND_US, 1, Intent::Take).admitted);
    assert_eq!(limit.idle_at_us(&state), 30 * SECOND_US);
}

#[test]
fn a_release_frees_its_own_slot_once_and_not_after_it_has_ended() {
    let (limit, mut state) = (slots(3), ExpiryLog::default());
    let first = limit.charge(&mut state, 0, 1);
    let second = limit.charge(&mut state, 5, 2);
    limit.give_back(&mut state, 6, 1, &first);
    limit.give_back(&mut state, 6, 1, &first);
    assert_eq!(limit.decide(&state, 6, 1, Intent::Peek).remaining, 1, "only one of three is free");
    limit.give_back(&mut state, 30 * SECOND_US + 5, 2, &second);
    assert_eq!(state.len(), 1, "it ended by itself");
}

#[test]
fn slots_may_be_held_for_different_times() {
    let (limit, mut state) = (slots(2), ExpiryLog::default());
    let short = limit.with_ttl(SECOND_US).expect("a second is in range");
    limit.charge(&mut state, 0, 1);
    short.charge(&mut state, 0, 1);
    let wait = |cost| limit.decide(&state, 0, cost, Intent::Take).retry_after_us;
    assert_eq!((wait(1), wait(2), wait(3)), (Some(SECOND_US), Some(30 * SECOND_US), None));
    assert_eq!(limit.decide(&state, 0, 1, Intent::Peek).reset_after_us, 30 * SECOND_US);
}

#[test]
fn fewer_slots_keep_those_who_hold_one() {
    let (many, few, mut state) = (slots(10), slots(3), ExpiryLog::default());
    many.charge(&mut state, 0, 4);
    many.charge(&mut state, 100, 4);
    let refused = few.decide(&state, 200, 1, Intent::Take);
    assert_eq!((refused.limit, refused.remaining), (3, 0));
    assert_eq!(
        refused.retry_after_us,
        Some(30 * SECOND_US - 100),
        "four of eight are still one too many"
    );
}

#[test]
fn a_clock_that_steps_back_brings_no_slot_back() {
    let (limit, mut state) = (slots(1), ExpiryLog::default());
    limit.charge(&mut state, 30 * SECOND_US, 1);
    let refused = limit.decide(&state, SECOND_US, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(59 * SECOND_US), "from the unclamped now");
    assert!(!limit.redate(&mut state, SECOND_US), "a step of one time to live is waited out");
}

#[test]
fn slots_of_a_leap_are_held_for_one_time_to_live() {
    let (limit, mut state) = (slots(1), ExpiryLog::default());
    limit.charge(&mut state, 3_600 * SECOND_US, 1);
    assert!(limit.redate(&mut state, SECOND_US));
    let refused = limit.decide(&state, SECOND_US, 1, Intent::Take);
    assert_eq!(refused.retry_after_us, Some(30 * SECOND_US));
    assert!(!limit.redate(&mut state, SECOND_US), "once is enough");
}

#[test]
fn numbers_out_of_range_are_refused() {
    let too_many = Concurrency::try_new(1 << 32, SECOND_US);
    assert_eq!(too_many, Err(InvalidParams::CountTooLarge));
    for ttl_us in [0, 999, 366 * 86_400 * SECOND_US + 1] {
        assert_eq!(Concurrency::try_new(1, ttl_us), Err(InvalidParams::TtlOutOfRange));
    }
}
