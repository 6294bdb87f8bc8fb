use super::*;

#[test]
fn one_bad_key_is_one_piece_of_news() {
    let refusals = RefusalTracker::default();
    assert!(!refusals.record_answer("a"), "nothing was refused");
    assert!(refusals.record_refusal("a"));
    for _ in 0..10 {
        assert!((1..ANSWERED_LEAST).all(|_| !refusals.record_answer("a")));
        assert!(!refusals.record_refusal("a"), "it is known");
    }
    assert!((1..ANSWERED_LEAST).all(|_| !refusals.record_answer("a")));
    assert!(refusals.record_answer("a"), "it is over");
    assert!(!refusals.record_answer("a"), "which is said once");
    assert!(refusals.record_refusal("a"), "and may begin again");
}

#[test]
fn answers_of_another_sort_end_nothing() {
    let refusals = RefusalTracker::default();
    assert!(refusals.record_refusal("a"));
    assert!(!refusals.record_refusal("b"), "one of them is told");
    assert!((0..10 * ANSWERED_LEAST).all(|_| !refusals.record_answer("b")));
    assert!((1..ANSWERED_LEAST).all(|_| !refusals.record_answer("a")));
    assert!(refusals.record_answer("a"));
}
