//! The thread that writes the usage trail.

use super::UsageTrail;
use super::writer::{UsageError, UsageWriter};
use crate::ObservedNode;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tollgate::store::ProcessClock;
use tollgate_policy::settings;

#[cfg(test)]
mod tests;

/// The interval at which the thread checks for a finished interval.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The ratio of rest to work. A million rows need some seconds of a core; the pauses leave the core
/// to decisions. A slow disk disables them.
const REST_RATIO: u64 = 3;
/// The divisor of the interval: the thread rests only in the first half.
const REST_WITHIN: u64 = 2;

/// Writes each interval after its end. Dropping it writes the last one.
#[derive(Debug)]
pub struct UsageThread {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UsageThread {
    /// Opens the file and starts the thread.
    pub fn start(
        node: Arc<dyn ObservedNode>,
        trail: Arc<UsageTrail>,
        settings: &settings::Usage,
        folder: &Path,
    ) -> Result<Self, UsageError> {
        let mut writer = UsageWriter::open(settings, folder, ProcessClock.now_us())?;
        let (stop, stopped) = sync_channel(1);
        let run = move || {
            while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let start_us = ProcessClock.now_us();
                let mut block_us = start_us;
                let mut rest = || {
                    let now_us = ProcessClock.now_us();
                    let rest_us = rest_us(trail.every_us, start_us, block_us, now_us);
                    // A stop ends the rest early; the loop sees the stop above.
                    let _ = stopped.recv_timeout(Duration::from_micros(rest_us));
                    block_us = ProcessClock.now_us();
                };
                writer.write_over(&*node, &trail, start_us, &mut rest);
            }
            writer.stop(&*node, &trail, ProcessClock.now_us());
        };
        let thread = thread::Builder::new().name("usage".into()).spawn(run);
        let path = folder.join(&*settings.file);
        let thread = thread.map_err(|source| UsageError { path, source })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

/// The rest after a block that began at `block_us`, in a run that began at `start_us`.
fn rest_us(every_us: u64, start_us: u64, block_us: u64, now_us: u64) -> u64 {
    // The clock may have been set back.
    let (run_us, took_us) = (now_us.saturating_sub(start_us), now_us.saturating_sub(block_us));
    if run_us < every_us / REST_WITHIN {
        took_us.saturating_mul(REST_RATIO).min(1_000_000)
    } else {
        0
    }
}

impl Drop for UsageThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already logged.
            let _ = thread.join();
        }
    }
}
