//! The clock of all measurements: the wall time at the start of the process, plus the time since
//! then.

pub mod shifted;

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// Microseconds since the epoch, like the clocks of servers on the same machine.
#[expect(clippy::disallowed_methods, reason = "measurements need the clock")]
pub fn now_us() -> u64 {
    static START: OnceLock<(Instant, Duration)> = OnceLock::new();
    let (start, wall) = START.get_or_init(|| {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        (Instant::now(), wall.expect("a clock that is set"))
    });
    (*wall + start.elapsed()).as_micros() as u64
}

/// Waits until the condition holds. Returns whether it did in time.
pub fn wait_until(within: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end_us = now_us() + within.as_micros() as u64;
    while !holds() {
        if now_us() > end_us {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
