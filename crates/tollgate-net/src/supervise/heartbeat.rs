//! Heartbeats: a thread answers requests between its tasks. A stuck thread does not.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;

/// The interval of heartbeat requests.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Unanswered requests in a row before a thread counts as stuck. The process itself counts them, so
/// a pause of the whole process counts as one at most.
const MISSED_MAX: u32 = 3;

/// The heartbeat of one thread.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    is_asked: AtomicBool,
    asked: Notify,
    /// Unanswered requests in a row.
    missed: AtomicU32,
}

/// The change that a request found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeartbeatChange {
    Lost,
    Recovered,
}

impl Heartbeat {
    /// Answers for ever, on the watched thread.
    pub(crate) async fn answer(&self) {
        loop {
            self.asked.notified().await;
            self.is_asked.store(false, Relaxed);
        }
    }

    /// Checks the answer to the last request, and sends the next one.
    pub(crate) fn ask(&self) -> Option<HeartbeatChange> {
        let is_missed = self.is_asked.swap(true, Relaxed);
        self.asked.notify_one();
        let before = self.missed.load(Relaxed);
        let missed = if is_missed { before.saturating_add(1) } else { 0 };
        self.missed.store(missed, Relaxed);
        match (before, missed) {
            (_, MISSED_MAX) if before < MISSED_MAX => Some(HeartbeatChange::Lost),
            (MISSED_MAX.., 0) => Some(HeartbeatChange::Recovered),
            _ => None,
        }
    }
}
