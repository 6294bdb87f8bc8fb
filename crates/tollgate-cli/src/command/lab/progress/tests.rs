use super::*;

#[test]
fn the_pace_is_that_of_the_whole_run() {
    let progress =
        Progress { watched: false, quiet: false, start_us: 1_000_000, shown_us: 1_000_000 };
    assert_eq!(progress.line(0, 1_000_000), "0 rows, 0 rows/s");
    assert_eq!(progress.line(3_000_000, 3_000_000), "3000000 rows, 1500000 rows/s");
}

#[test]
fn the_rest_takes_as_long_as_the_part_before_it() {
    assert_eq!(remaining(10_000_000, (25, 100)).as_deref(), Some(", 25 %, 0:30 left"));
    assert_eq!(remaining(60_000_000, (1, 3)).as_deref(), Some(", 33 %, 2:00 left"));
    assert_eq!(remaining(60_000_000, (5, 3)).as_deref(), Some(", 100 %, 0:00 left"));
    assert_eq!(remaining(60_000_000, (0, 3)), None);
}
