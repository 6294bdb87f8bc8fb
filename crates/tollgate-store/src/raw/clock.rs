//! The process clock, first as plain as it can be.
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static START: OnceLock<(u64, Instant)> = OnceLock::new();

/// Wall time at start plus monotonic time since: never re-read, never backwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessClock;

impl ProcessClock {
    /// The present instant, in microseconds since the Unix epoch.
    pub fn now_us(self) -> u64 {
        let (wall_us, start) = START.get_or_init(|| {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (wall.as_micros() as u64, Instant::now())
        });
        wall_us + start.elapsed().as_micros() as u64
    }
}
