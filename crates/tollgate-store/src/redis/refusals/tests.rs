use super::*;

#[test]
fn one_bad_key_is_one_piece_of_news() {
    let refusals = Refusals::default();
    assert!(!refusals.end_with("a"), "nothing was refused");
    assert!(refusals.begin_with("a"));
    for _ in 0..10 {
        assert!((1..ANSWERED_LEAST).all(|_| !refusals.end_with("a")));
        assert!(!refusals.begin_with("a"), "it is known");
    }
    assert!((1..ANSWERED_LEAST).all(|_| !refusals.end_with("a")));
    assert!(refusals.end_with("a"), "it is over");
    assert!(!refusals.end_with("a"), "which is said once");
    assert!(refusals.begin_with("a"), "and may begin again");
}

#[test]
fn answers_of_another_sort_end_nothing() {
    let refusals = Refusals::default();
    assert!(refusals.begin_with("a"));
    assert!(!refusals.begin_with("b"), "one of them is told");
    assert!((0..10 * ANSWERED_LEAST).all(|_| !refusals.end_with("b")));
    assert!((1..ANSWERED_LEAST).all(|_| !refusals.end_with("a")));
    assert!(refusals.end_with("a"));
}
