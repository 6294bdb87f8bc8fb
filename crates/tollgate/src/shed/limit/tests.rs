//! Tests of the search, where a whole run shows too little.

use super::{KNOWN, LimitController, Meter, SCALE};

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
