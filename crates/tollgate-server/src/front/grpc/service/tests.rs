use super::*;

#[test]
fn a_decision_has_what_the_caller_leaves_it_and_never_more_than_25_ms() {
    let ms = Duration::from_millis;
    for (told, left) in [
        (None, ms(15)),
        (Some(ms(20)), ms(15)),
        (Some(ms(29)), ms(24)),
        (Some(ms(30)), ms(25)),
        (Some(ms(31)), ms(25)),
        (Some(ms(3_600_000)), ms(25)),
        (Some(ms(6)), ms(1)),
        (Some(ms(5)), ms(0)),
        (Some(ms(0)), ms(0)),
    ] {
        assert_eq!(Deadline::for_caller(told).within, left, "{told:?}");
    }
}
