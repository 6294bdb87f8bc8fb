use super::rest_us;

const MINUTE: u64 = 60_000_000;

#[test]
fn the_thread_rests_three_times_as_long_as_it_works() {
    assert_eq!(rest_us(MINUTE, 100, 1_000_100, 1_005_100), 15_000);
    assert_eq!(rest_us(MINUTE, 0, 0, 900_000), 1_000_000, "a slow disk is no reason to rest long");
}

#[test]
fn late_in_an_interval_the_thread_does_not_rest() {
    assert_eq!(rest_us(MINUTE, 0, MINUTE / 2 - 10_000, MINUTE / 2), 0);
    assert_eq!(rest_us(MINUTE, 5_000, 5_000, 1_000), 0, "the clock was set back");
}
