use super::*;

const SECOND: u64 = 1_000_000;

#[test]
fn blocks_lengthen_up_to_the_maximum_and_clear_after_it() {
    let penalty = Penalty::try_new(2, 60 * SECOND, 2_000, 200 * SECOND).unwrap();
    let mut state = PenaltyState::default();
    assert_eq!(penalty.count(&mut state, 0), None);
    assert_eq!(penalty.count(&mut state, 0), Some(60 * SECOND));
    assert_eq!(penalty.blocked_until_us(&state, 60 * SECOND - 1), Some(60 * SECOND));
    assert_eq!(penalty.blocked_until_us(&state, 60 * SECOND), None);
    penalty.count(&mut state, 61 * SECOND);
    assert_eq!(penalty.count(&mut state, 61 * SECOND), Some(181 * SECOND));
    penalty.count(&mut state, 182 * SECOND);
    assert_eq!(penalty.count(&mut state, 182 * SECOND), Some(382 * SECOND), "capped at max");
    let clear = 582 * SECOND;
    assert_eq!(penalty.idle_at_us(&state), clear);
    let mut late = state;
    assert_eq!(penalty.count(&mut late, clear), None);
    assert_eq!(late.blocks, 0, "both counts cleared");
    let mut early = state;
    penalty.count(&mut early, clear - 1);
    assert_eq!(early.blocks, 3, "one microsecond earlier nothing is cleared");
}

#[test]
fn a_block_of_many_steps_saturates() {
    let penalty = Penalty::try_new(1, 1, Penalty::FACTOR_MILLI_MAX, MAX_US).unwrap();
    let mut state = PenaltyState { blocks: u32::MAX, violations: 0, mark_us: 5, blocked: true };
    assert_eq!(penalty.count(&mut state, 10), Some(MAX_US));
    assert_eq!(state.blocks, u32::MAX);
}
