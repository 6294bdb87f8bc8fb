use super::*;
use crate::algorithm::CalendarWindow;
use crate::{CalendarUnit, Zone};
use std::vec::Vec;

const MINUTE_US: u64 = 60_000_000;

fn every(count: u64, burst: u64) -> Vec<Numbers> {
    let rate = Rate::try_new(count, MINUTE_US).unwrap();
    std::vec![
        Numbers::FixedWindow(FixedWindow::new(rate)),
        Numbers::SlidingLog(SlidingLog::new(rate)),
        Numbers::SlidingWindow(SlidingWindow::new(rate)),
        Numbers::TokenBucket(TokenBucket::try_new(rate, Some(burst)).unwrap()),
        Numbers::Gcra(Gcra::try_new(rate, Some(burst)).unwrap()),
        Numbers::LeakyBucket(LeakyBucket::try_new(rate, Some(burst), Some(burst)).unwrap()),
        Numbers::Concurrency(Concurrency::try_new(count, MINUTE_US).unwrap()),
        Numbers::CalendarWindow(CalendarWindow::new(count as u32, CalendarUnit::Day, Zone::UTC)),
    ]
}

#[test]
fn a_share_is_the_floor_of_every_count() {
    for (whole, third) in every(100, 10).iter().zip(every(33, 3)) {
        assert_eq!(whole.share(3), third);
        assert_eq!(whole.share(1), *whole, "one node has all of it");
        assert_eq!(whole.share(0), *whole, "and there is always one");
    }
}

#[test]
fn shares_never_add_up_to_more_than_the_whole() {
    for numbers in every(100, 10) {
        for nodes in 1..=200 {
            let share = numbers.share(nodes);
            assert!(share.capacity() * u64::from(nodes) <= numbers.capacity());
            assert!(share.period_us() == numbers.period_us() || share.capacity() == 0);
        }
    }
}

#[test]
fn a_share_of_nothing_refuses() {
    for numbers in every(100, 10) {
        assert_eq!(numbers.share(101).capacity(), 0, "{}", numbers.algorithm());
    }
}
