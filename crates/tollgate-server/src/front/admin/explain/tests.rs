//! Durations in words.

use super::words::duration;

#[test]
fn a_duration_has_its_two_largest_units() {
    for (us, text) in [
        (0, "0 ms"),
        (1, "1 ms"),
        (600_000, "600 ms"),
        (1_000_000, "1 s"),
        (1_500_000, "1.5 s"),
        (12_345_678, "12.346 s"),
        (60_000_000, "1 min"),
        (200_000_000, "3 min 20 s"),
        (7_500_000_000, "2 h 5 min"),
        (273_600_000_000, "3 d 4 h"),
    ] {
        assert_eq!(duration(us), text);
    }
}
