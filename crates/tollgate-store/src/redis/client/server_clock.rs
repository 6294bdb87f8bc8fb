//! Compares the servers' clocks with this process's, to notice clock jumps.
//!
//! Algorithms correct state with wrong dates by themselves. These reports are for operators.

use super::server::Server;
use std::sync::Mutex;

/// The smallest jump to report. Every algorithm waits out a smaller difference.
const LEAP_US_MIN: i64 = 1_000_000;

/// A server's time, and the send and reply times of the call by this process's boot-time clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReading {
    sent_us: u64,
    answered_us: u64,
    server_us: u64,
}

/// The last reading.
#[derive(Debug, Default)]
pub(crate) struct ServerClock(Mutex<Option<ClockReading>>);

impl ClockReading {
    /// The server's time minus this process's, as a range.
    fn offset_us(&self) -> (i64, i64) {
        let server_us = self.server_us.cast_signed();
        let less = |own_us: u64| server_us.wrapping_sub(own_us.cast_signed());
        (less(self.answered_us), less(self.sent_us))
    }

    /// The least jump of the server's clock since `before`; negative if backwards.
    fn leap_since(&self, before: &Self) -> Option<i64> {
        let ((least, most), (before_least, before_most)) = (self.offset_us(), before.offset_us());
        let ahead_us = least.saturating_sub(before_most);
        let back_us = most.saturating_sub(before_least);
        let leap_us = if ahead_us > 0 { ahead_us } else { back_us.min(0) };
        (leap_us.abs() > LEAP_US_MIN).then_some(leap_us)
    }
}

impl ServerClock {
    /// Replaces the reading. An error if another thread holds the reading: with two calls at once,
    /// it is unknown which one saw the jump.
    fn replace(&self, reading: ClockReading) -> Result<Option<ClockReading>, ()> {
        let mut last = self.0.try_lock().map_err(drop)?;
        if last.is_some_and(|last| reading.sent_us < last.answered_us) {
            return Err(());
        }
        Ok(last.replace(reading))
    }
}

impl Server {
    /// Compares the server's time in a reply with the last reading. The first reply of a server is
    /// compared with the last reading of any server, which it may have replaced.
    pub(crate) fn note_server_time(&self, (sent_us, answered_us): (u64, u64), server_us: u64) {
        let reading = ClockReading { sent_us, answered_us, server_us };
        let latest = self.shared.latest_clock.replace(reading).unwrap_or(None);
        let Ok(before) = self.clock.replace(reading) else { return };
        let leap_us = before.or(latest).and_then(|before| reading.leap_since(&before));
        if let Some(leap_us) = leap_us {
            self.shared.options.notify(|observer| observer.clock_leapt(&self.name, leap_us));
        }
    }
}

#[cfg(test)]
mod tests;
