use super::super::summary::LastFigures;
use super::{SECOND_US, Summary, TopWindow, WindowedSummary};

fn one(key: u64, units: u64) -> Summary {
    let mut summary = Summary::default();
    summary.add(key, (0, &[1]), units, LastFigures::default());
    summary
}

#[test]
fn a_window_has_all_of_its_length_and_at_most_a_slot_more() {
    for (window, length) in [(TopWindow::Minute, 60), (TopWindow::Hour, 3_600)] {
        let mut windows = WindowedSummary::default();
        let mut added = Vec::new();
        for second in (1_000_003..1_000_003 + 3 * length).step_by(length as usize / 23) {
            let now_us = second * SECOND_US;
            windows.expire(now_us);
            windows.add(now_us, &one(1, second));
            added.push(second);
            let start = window.start_us(now_us) / SECOND_US;
            assert!(second - start >= length && second - start < length * 7 / 6, "{start}");
            let exact: u64 = added.iter().filter(|second| **second >= start).sum();
            assert_eq!(windows.read(window).total_units(), exact, "{second}");
        }
    }
}

#[test]
fn an_idle_limit_is_forgotten_and_a_clock_that_steps_back_loses_nothing() {
    let mut windows = WindowedSummary::default();
    windows.add(7_200 * SECOND_US, &one(1, 5));
    windows.add(7_100 * SECOND_US, &one(1, 5));
    assert_eq!(windows.read(TopWindow::Minute).total_units(), 10);
    assert!(windows.expire(7_300 * SECOND_US));
    assert_eq!(windows.read(TopWindow::Minute).total_units(), 0);
    assert_eq!(windows.read(TopWindow::Hour).total_units(), 10);
    assert!(!windows.expire((7_200 + 4_200) * SECOND_US));
}
