//! Line sinks: standard error, or a file that one thread writes.

use super::rotating_file::RotatingFile;
use crate::log::{self, LogQueue};
use crate::time::rfc3339;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{io, thread};
use tollgate::store::ProcessClock;
use tollgate_policy::settings::LogSink;

/// Queues lines without waiting. Clones share the queue.
#[derive(Clone, Debug)]
pub(super) struct LineSink {
    destination: Destination,
    dropped: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
enum Destination {
    /// The log queue of the process.
    Stderr,
    File(Arc<FileQueue>),
}

/// The queue of a file. Its thread ends when the last sink is dropped.
#[derive(Debug)]
struct FileQueue {
    queue: LogQueue,
    settings: LogSink,
    path: PathBuf,
    reopens: Arc<AtomicBool>,
}

/// A file could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", .path.display())]
pub(super) struct SinkError {
    path: PathBuf,
    source: io::Error,
}

impl LineSink {
    /// Opens a sink that adds lost lines to `dropped`.
    pub(super) fn open(
        settings: &LogSink,
        folder: &Path,
        dropped: Arc<AtomicU64>,
    ) -> Result<Self, SinkError> {
        let LogSink::File { path, bytes_max, keep } = settings else {
            return Ok(Self { destination: Destination::Stderr, dropped });
        };
        let path = folder.join(&**path);
        let failed = |source| SinkError { path: path.clone(), source };
        let reopens = Arc::<AtomicBool>::default();
        let file = RotatingFile::open(&path, *bytes_max, *keep, reopens.clone()).map_err(failed)?;
        let queue = LogQueue::counting(dropped.clone());
        let spawned = thread::Builder::new().name("record".into()).spawn({
            let queue = queue.clone();
            move || queue.write_to(file, loss_line)
        });
        spawned.map_err(failed)?;
        let file = FileQueue { queue, settings: settings.clone(), path: path.clone(), reopens };
        Ok(Self { destination: Destination::File(Arc::new(file)), dropped })
    }

    /// Returns this sink if the settings name it. The sink reopens its file, so that a reload
    /// follows a rotation by another program.
    pub(super) fn reopened(&self, settings: &LogSink, folder: &Path) -> Option<Self> {
        match (&self.destination, settings) {
            (Destination::Stderr, LogSink::Stderr) => Some(self.clone()),
            (Destination::File(file), LogSink::File { path, .. })
                if file.settings == *settings && file.path == folder.join(&**path) =>
            {
                file.reopens.store(true, Relaxed);
                Some(self.clone())
            }
            _ => None,
        }
    }

    /// Queues a line, or drops and counts it.
    pub(super) fn write(&self, line: &[u8]) {
        match &self.destination {
            Destination::Stderr => {
                if !log::push_line(line) {
                    self.dropped.fetch_add(1, Relaxed);
                }
            }
            Destination::File(file) => {
                file.queue.push(line);
            }
        }
    }

    /// Waits until all lines are written, for at most `timeout`.
    pub(super) fn flush(&self, timeout: Duration) {
        if let Destination::File(file) = &self.destination {
            file.queue.flush(timeout);
        }
    }
}

impl Drop for FileQueue {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The line that marks lost lines.
fn loss_line(lost: u64) -> Vec<u8> {
    let time = rfc3339(ProcessClock.now_us());
    format!("{{\"time\":\"{time}\",\"lost_lines\":{lost}}}\n").into_bytes()
}
