use super::*;

const HOUR_US: u64 = 3_600_000_000;

/// The reading of a call at `sent_us` that took `took_us`.
fn reading(sent_us: u64, took_us: u64, server_us: u64) -> ClockReading {
    ClockReading { sent_us, answered_us: sent_us + took_us, server_us }
}

#[test]
fn a_leap_has_an_amount_and_a_direction() {
    let (before, ahead) = (reading(10, 20, 5_000), reading(100, 20, HOUR_US + 5_090));
    assert_eq!(ahead.leap_since(&before), Some(HOUR_US as i64 - 20));
    assert_eq!(before.leap_since(&ahead), Some(20 - HOUR_US as i64));
    assert_eq!(before.leap_since(&before), None);
}

#[test]
fn a_slow_reply_is_no_leap() {
    let (before, second_us) = (reading(0, 10, HOUR_US), 1_000_000);
    // The server answered at once, but the node was paused for ten seconds before it read the
    // reply.
    let slow = reading(second_us, 10 * second_us, HOUR_US + second_us);
    assert_eq!(slow.leap_since(&before), None);
    let after = reading(12 * second_us, 10, HOUR_US + 12 * second_us);
    assert_eq!(after.leap_since(&slow), None);
}

#[test]
fn a_step_of_a_second_is_waited_out_and_not_told() {
    let before = reading(0, 0, HOUR_US);
    assert_eq!(reading(0, 0, HOUR_US - 1_000_000).leap_since(&before), None);
    assert_eq!(reading(0, 0, HOUR_US - 1_000_001).leap_since(&before), Some(-1_000_001));
}

#[test]
fn of_two_calls_at_once_one_counts() {
    let clock = ServerClock::default();
    assert_eq!(clock.replace(reading(0, 100, HOUR_US)), Ok(None));
    assert_eq!(clock.replace(reading(50, 100, 0)), Err(()), "it began before the other ended");
    assert_eq!(clock.replace(reading(100, 100, 0)), Ok(Some(reading(0, 100, HOUR_US))));
}
