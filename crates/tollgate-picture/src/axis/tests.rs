use super::*;

#[test]
fn time_marks_are_round_and_few() {
    let labels = |span_us: u64| -> Vec<String> {
        time_ticks(span_us).into_iter().map(|(_, label)| label).collect()
    };
    assert_eq!(labels(3), ["0 µs", "1 µs", "2 µs", "3 µs"]);
    assert_eq!(labels(10_000_000).last().unwrap(), "10 s");
    assert_eq!(labels(90_000_000).last().unwrap(), "90 s");
    assert_eq!(labels(3_600_000_000).last().unwrap(), "60 min");
    for power in 0..53 {
        let marks = time_ticks(1 << power);
        assert!((2..=13).contains(&marks.len()), "{power}: {marks:?}");
        assert!(marks.iter().all(|(at_us, _)| *at_us <= 1 << power));
    }
}

#[test]
fn durations_take_their_largest_whole_unit() {
    for (us, text) in [
        (1, "1 µs"),
        (100_000, "100 ms"),
        (1_000_000, "1 s"),
        (90_000_000, "90 s"),
        (7_200_000_000, "2 h"),
    ] {
        assert_eq!(format_duration(us), text);
    }
}

#[test]
fn offsets_are_read_as_on_a_clock() {
    for (us, text) in [
        (0, "0 s"),
        (50_000, "0.05 s"),
        (10_000_000, "10 s"),
        (150_500_000, "2 min 30.5 s"),
        (90_000_000_000, "1 d 1 h"),
    ] {
        assert_eq!(format_offset(us), text);
    }
}

#[test]
fn count_axes_reach_their_maximum_in_whole_steps() {
    for (max, top, step) in [(0, 1, 1), (1, 1, 1), (4, 4, 1), (5, 6, 2), (40, 40, 10), (41, 60, 20)]
    {
        assert_eq!(count_ticks(max), (top, step), "{max}");
    }
    for max in [999, 123_456, u64::MAX / 8] {
        let (top, step) = count_ticks(max);
        assert!(top >= max && top.is_multiple_of(step) && top / step <= 5);
    }
}

#[test]
fn counts_are_grouped_by_thousands() {
    assert_eq!(format_grouped(0), "0");
    assert_eq!(format_grouped(999), "999");
    assert_eq!(format_grouped(1_000), "1,000");
    assert_eq!(format_grouped(1_234_567), "1,234,567");
}

#[test]
fn instants_are_civil_dates() {
    for (us, text) in [
        (0, "1970-01-01 00:00:00 UTC"),
        (951_782_400_000_000, "2000-02-29 00:00:00 UTC"),
        (1_700_000_000_999_999, "2023-11-14 22:13:20 UTC"),
        (4_107_542_400_000_000, "2100-03-01 00:00:00 UTC"),
        (9_007_199_254_740_991, "2255-06-05 23:47:34 UTC"),
    ] {
        assert_eq!(format_utc(us), text);
    }
}
