use super::ProcessClock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[test]
fn keeps_pace_with_instant() {
    let clock = ProcessClock;
    let first_us = clock.now_us();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(150) {
        thread::sleep(Duration::from_millis(10));
        let ours_us = clock.now_us() - first_us;
        let theirs_us = start.elapsed().as_micros() as u64;
        assert!(ours_us <= theirs_us + 500, "ahead: {ours_us} and {theirs_us}");
        assert!(ours_us + 20_000 >= theirs_us, "behind: {ours_us} and {theirs_us}");
    }
}

#[test]
fn starts_at_wall_time() {
    let wall_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    assert!(ProcessClock.now_us().abs_diff(wall_us) < 5_000_000);
}

/// Longer than a second, so that a new line is laid meanwhile.
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
