use super::*;

#[test]
fn the_pace_is_that_of_the_whole_run() {
    let progress =
        Progress { watched: false, quiet: false, start_us: 1_000_000, shown_us: 1_000_000 };
    let mut tally = Tally::new(&[], None);
    assert_eq!(progress.line(&tally, 1_000_000), "0 rows, 0 rows/s");
    tally.rows = 3_000_000;
    assert_eq!(progress.line(&tally, 3_000_000), "3000000 rows, 1500000 rows/s");
}
