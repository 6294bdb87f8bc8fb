//! Log queue: one thread writes the lines, so that a full pipe blocks no other thread.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tollgate_net::lock;

/// Limit of bytes waiting for the sink.
pub(super) const QUEUED_BYTES_MAX: usize = 1 << 20;
/// The interval between write attempts to a full non-blocking sink.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Lines that wait for the thread that writes them. Clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct LogQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Lines lost since the start.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct QueueState {
    lines: VecDeque<QueuedLine>,
    /// The sum of the lengths of `lines`.
    bytes: usize,
    next_id: u64,
    /// Lines lost since the last report.
    unreported: u64,
    /// The first unreported loss happened before the line with this id.
    lost_before: u64,
    is_writing: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct QueuedLine {
    id: u64,
    bytes: Box<[u8]>,
    /// Receives the result of the write.
    written: Option<SyncSender<io::Result<()>>>,
}

impl LogQueue {
    /// Creates a queue that adds lost lines to `dropped`.
    pub fn counting(dropped: Arc<AtomicU64>) -> Self {
        Self(Arc::new(Shared { dropped, ..Shared::default() }))
    }

    /// Queues a line and returns whether it fits. A line that does not fit is dropped and counted.
    pub fn push(&self, line: &[u8]) -> bool {
        let mut state = lock(&self.0.state);
        let fits = state.push(line, None).is_some();
        if !fits {
            self.count_dropped(&mut state);
        }
        drop(state);
        self.0.changed.notify_all();
        fits
    }

    /// Ends the writing thread once all queued lines are written.
    pub fn close(&self) {
        lock(&self.0.state).is_closed = true;
        self.0.changed.notify_all();
    }

    /// Queues a line and waits for its write, for at most `timeout`.
    ///
    /// After a timeout the line is removed, unless the thread is already writing it.
    pub(super) fn write_within(&self, line: &[u8], timeout: Duration) -> io::Result<()> {
        let unread = || io::Error::new(io::ErrorKind::TimedOut, "its reader does not read");
        let (written, result) = sync_channel(1);
        let id = lock(&self.0.state).push(line, Some(written)).ok_or_else(unread)?;
        self.0.changed.notify_all();
        result.recv_timeout(timeout).unwrap_or_else(|_| {
            lock(&self.0.state).remove(id);
            Err(unread())
        })
    }

    /// Waits until all lines are written, for at most `timeout`.
    pub fn flush(&self, timeout: Duration) {
        let is_busy = |state: &mut QueueState| state.is_writing || !state.lines.is_empty();
        let state = lock(&self.0.state);
        drop(self.0.changed.wait_timeout_while(state, timeout, is_busy));
    }

    /// Lines lost since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }

    /// Writes the lines to `sink` until the queue is closed. After a loss, `report` turns the
    /// number of lost lines into a line for the sink.
    pub fn write_to(&self, mut sink: impl Write, report: impl Fn(u64) -> Vec<u8>) {
        while let Some(line) = self.next() {
            let result = write_all(&mut sink, &line.bytes);
            let is_written = result.is_ok();
            match line.written {
                // The caller may have given up waiting.
                Some(written) => drop(written.try_send(result)),
                None if !is_written => self.count_dropped(&mut lock(&self.0.state)),
                None => {}
            }
            if is_written {
                let lost = lock(&self.0.state).take_lost(line.id);
                if lost > 0 && write_all(&mut sink, &report(lost)).is_err() {
                    lock(&self.0.state).unreported += lost;
                }
            }
        }
    }

    /// Waits for a line; `None` when the queue is closed.
    fn next(&self) -> Option<QueuedLine> {
        let mut state = lock(&self.0.state);
        state.is_writing = false;
        self.0.changed.notify_all();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.bytes.len();
                state.is_writing = true;
                return Some(line);
            }
            if state.is_closed {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn count_dropped(&self, state: &mut QueueState) {
        if state.unreported == 0 {
            state.lost_before = state.next_id;
        }
        state.unreported += 1;
        self.0.dropped.fetch_add(1, Relaxed);
    }
}

impl QueueState {
    /// Queues a line if it fits. After a loss the queue must empty first, so that the report
    /// appears where lines are missing.
    fn push(&mut self, line: &[u8], written: Option<SyncSender<io::Result<()>>>) -> Option<u64> {
        let fits = self.bytes + line.len() <= QUEUED_BYTES_MAX;
        if !fits || (self.unreported > 0 && !self.lines.is_empty()) {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.bytes += line.len();
        self.lines.push_back(QueuedLine { id, bytes: line.into(), written });
        Some(id)
    }

    /// Takes the number of lost lines, if the loss happened at or before line `id`.
    fn take_lost(&mut self, id: u64) -> u64 {
        if id + 1 >= self.lost_before { std::mem::take(&mut self.unreported) } else { 0 }
    }

    fn remove(&mut self, id: u64) {
        if let Some(at) = self.lines.iter().position(|line| line.id == id)
            && let Some(line) = self.lines.remove(at)
        {
            self.bytes -= line.bytes.len();
        }
    }
}

/// Each write is one line.
impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all bytes, even to a pipe that another process made non-blocking.
fn write_all(sink: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(RETRY_INTERVAL);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
