//! Tests of the search, where a whole run shows too little.

use super::{KNOWN, LimitController, LoadView, Meter, SCALE, SearchStage};

fn meter(in_flight: u64, completed: u64) -> Meter {
    let length_us = 100_000;
    let in_flight_us = in_flight * length_us;
    Meter { length_us, in_flight_us, full_us: length_us, completed, ..Meter::default() }
}

#[test]
fn a_pause_at_the_low_level_moves_the_knee_no_further_than_the_high_one() {
    let mut controller = LimitController::new(4, 512, 10);
    (controller.low, controller.high) = (meter(8, 10), meter(12, 200));
    controller.learn();
    assert!(controller.knee <= 14 * SCALE, "{}", controller.knee);
}

#[test]
fn one_part_with_another_throughput_is_chance() {
    let mut controller = LimitController::new(4, 512, 10);
    controller.estimates = KNOWN;
    controller.is_wide = false;
    controller.reference = meter(12, 200).rate().unwrap_or(0);
    let changes = [200, 200, 100, 200, 100, 100].map(|completed| {
        controller.meter = meter(12, completed);
        controller.notice_change();
        controller.is_wide
    });
    assert_eq!(changes, [false, false, false, false, false, true]);
}

/// A controller that checks the highest level, 100, for a queue. The calls of that level took
/// 100 ms.
fn checking() -> LimitController {
    let mut controller = LimitController::new(4, 100, 100);
    controller.set_knee(25 * SCALE);
    controller.limit = controller.high();
    controller.climbed = Some((100, 1_000 << 8));
    controller.high = meter(100, 100);
    controller
}

#[test]
fn slower_calls_leave_the_highest_level_in_force() {
    let mut controller = checking();
    controller.meter = meter(25, 25);
    assert_eq!(controller.check(), SearchStage::CheckMeasure);
    assert_eq!(controller.check(), SearchStage::LowSettle);
    assert_eq!(controller.high(), 100);
}

#[test]
fn a_pause_of_the_upstream_decides_no_check() {
    let mut controller = checking();
    controller.meter = meter(25, 0);
    assert_eq!(controller.check(), SearchStage::CheckMeasure);
    controller.meter = meter(25, 100);
    controller.check();
    assert!(controller.is_found, "as many calls end: they queue");
}

#[test]
fn errors_during_a_check_lower_the_level_that_was_in_force() {
    let mut controller = checking();
    controller.meter = Meter { overloaded: 50, ..meter(25, 50) };
    assert_eq!(controller.check(), SearchStage::Rest);
    assert!((80..100).contains(&controller.high()), "{}", controller.high());
}

#[test]
fn the_low_level_does_not_outlive_its_overload() {
    let mut controller = checking();
    let load = LoadView { is_overloaded: false, is_waiting: true, in_flight: 90, gap_us: 50_000 };
    controller.enter(0, SearchStage::LowSettle, load);
    controller.next_stage(2_000_000, load);
    assert_eq!(controller.stage, SearchStage::Rest);
}
