#![expect(clippy::disallowed_methods, reason = "compared with the system's clocks")]

use super::ProcessClock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Each reading lies between two readings of the system's clock, so a preempted thread causes no
/// failure.
#[test]
fn keeps_pace_with_instant() {
    let start = Instant::now();
    let first_us = ProcessClock.now_us();
    let slack_us = start.elapsed().as_micros() as u64 + 500;
    while start.elapsed() < Duration::from_millis(150) {
        thread::sleep(Duration::from_millis(10));
        let before_us = start.elapsed().as_micros() as u64;
        let ours_us = ProcessClock.now_us() - first_us;
        let after_us = start.elapsed().as_micros() as u64;
        assert!(ours_us <= after_us + slack_us, "ahead: {ours_us} and {after_us}");
        assert!(ours_us + slack_us >= before_us, "behind: {ours_us} and {before_us}");
    }
}

#[test]
fn starts_at_wall_time() {
    let wall_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    assert!(ProcessClock.now_us().abs_diff(wall_us) < 5_000_000);
}

/// Runs for more than a second, so that a new line starts meanwhile.
#[test]
fn never_backwards_across_threads() {
    let latest_us = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while start.elapsed() < Duration::from_millis(1_300) {
                    for _ in 0..1_000 {
                        let told_us = latest_us.load(Ordering::SeqCst);
                        let now_us = ProcessClock.now_us();
                        assert!(now_us >= told_us, "{now_us} after {told_us}");
                        latest_us.fetch_max(now_us, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

/// Another thread may start a line after this one has read the counter.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn a_counter_read_before_a_line_shows_its_start() {
    let Some(super::CounterClock(counter)) = ProcessClock.counter() else { return };
    let half_us_per_tick = 1 << 63;
    assert_eq!(counter.off_line(1_000, 0, half_us_per_tick, 8), 1_004);
    assert_eq!(counter.off_line(1_000, 0, half_us_per_tick, 0_u64.wrapping_sub(8)), 1_000);
}

#[test]
fn decisions_see_the_same_time() {
    let Some(counter) = ProcessClock.counter() else { return };
    let start = Instant::now();
    // More than a second, so that a new line starts meanwhile.
    while start.elapsed() < Duration::from_millis(1_100) {
        let before_us = ProcessClock.now_us();
        let now_us = counter.now_us();
        let after_us = ProcessClock.now_us();
        assert!(
            now_us + 1 >= before_us && now_us <= after_us + 1,
            "{before_us} {now_us} {after_us}"
        );
    }
}
