use super::*;
use crate::algorithm::CalendarWindow;
use crate::{CalendarUnit, Zone};
use std::vec::Vec;

const MINUTE_US: u64 = 60_000_000;

fn every(count: u64, burst: u64) -> Vec<LimitParams> {
    let rate = Rate::try_new(count, MINUTE_US).unwrap();
    std::vec![
        LimitParams::FixedWindow(FixedWindow::new(rate)),
        LimitParams::SlidingLog(SlidingLog::new(rate)),
        LimitParams::SlidingWindow(SlidingWindow::new(rate)),
        LimitParams::TokenBucket(TokenBucket::try_new(rate, Some(burst)).unwrap()),
        LimitParams::Gcra(Gcra::try_new(rate, Some(burst)).unwrap()),
        LimitParams::LeakyBucket(LeakyBucket::try_new(rate, Some(burst), Some(burst)).unwrap()),
        LimitParams::Concurrency(Concurrency::try_new(count, MINUTE_US).unwrap()),
        LimitParams::CalendarWindow(CalendarWindow::new(
            count as u32,
            CalendarUnit::Day,
            Zone::UTC
        )),
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
    for params in every(100, 10) {
        for nodes in 1..=200 {
            let share = params.share(nodes);
            assert!(share.capacity() * u64::from(nodes) <= params.capacity());
            assert!(share.period_us() == params.period_us() || share.capacity() == 0);
        }
    }
}

#[test]
fn a_share_of_nothing_refuses() {
    for params in every(100, 10) {
        assert_eq!(params.share(101).capacity(), 0, "{}", params.algorithm());
    }
}

#[test]
fn a_wider_limit_counts_the_units_that_a_smaller_one_hides() {
    let counts: Vec<_> = every(9, 9)
        .into_iter()
        .zip(every(5, 5))
        .map(|(before, after)| {
            let mut state = LimitState::default();
            before.charge(&mut state, MINUTE_US, 9);
            let used = |params: &LimitParams| {
                let outcome = params.decide(&state, MINUTE_US, 0, crate::Intent::Peek);
                outcome.limit - outcome.remaining
            };
            let widest = after.widest()?;
            assert_eq!(used(&after), 5, "{}", after.algorithm());
            Some(used(&widest))
        })
        .collect();
    let units = Some(9);
    assert_eq!(counts, [units, units, units, None, None, None, units, units]);
}
