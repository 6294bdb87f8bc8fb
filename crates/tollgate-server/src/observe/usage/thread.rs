//! The thread that writes the usage trail.

use super::UsageTrail;
use super::writer::{UsageError, UsageWriter};
use crate::node::Node;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tollgate_policy::settings;

/// How often the thread looks whether an interval is over.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Writes intervals when they are over. Dropping it writes the last one.
#[derive(Debug)]
pub(crate) struct UsageThread {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UsageThread {
    /// Opens the file and starts the thread.
    pub(crate) fn start(
        node: Arc<Node>,
        trail: Arc<UsageTrail>,
        settings: &settings::Usage,
        folder: &Path,
    ) -> Result<Self, UsageError> {
        let mut writer = UsageWriter::open(settings, folder, node.clock.now_us())?;
        let (stop, stopped) = sync_channel(1);
        let run = move || {
            while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                writer.write_over(&node, &trail, node.clock.now_us());
            }
            writer.stop(&node, &trail, node.clock.now_us());
        };
        let thread = thread::Builder::new().name("usage".into()).spawn(run);
        let thread =
            thread.map_err(|error| UsageError::new(folder.join(&*settings.file), error))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for UsageThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been logged.
            let _ = thread.join();
        }
    }
}
