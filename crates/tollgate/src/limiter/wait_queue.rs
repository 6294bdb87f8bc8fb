//! Waiters by key, in the order of arrival.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// All lines together hold this many times the waiters of one line.
const QUEUES_MAX: usize = 64;

/// The lines of all keys with waiters.
#[derive(Debug)]
pub(crate) struct WaitQueues {
    by_key: Mutex<QueuesByKey>,
    /// The number of all waiters. It changes under the lock, and is read without it.
    total: AtomicUsize,
    max_per_key: usize,
}

/// Each line, and the number of its waiters.
type QueuesByKey = HashMap<Box<[u8]>, (Arc<WaitQueue>, usize)>;

/// The line for one key.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    /// The first waiter holds this lock. The lock is fair, so the others get it in order.
    front: tokio::sync::Mutex<()>,
    /// Notified when units were given back, so that the first waiter checks again.
    pub(super) changed: Notify,
    /// The first waiter is not admitted before this, unless units are given back.
    ready_us: AtomicU64,
}

/// The front of a line. Dropping it clears the wait of the first waiter.
pub(super) struct QueueFront<'a> {
    line: &'a WaitQueue,
    _lock: tokio::sync::MutexGuard<'a, ()>,
}

/// A waiter's place in a line. Dropping it leaves the line.
#[derive(Debug)]
pub(super) struct QueuePlace<'a> {
    queues: &'a WaitQueues,
    key: Box<[u8]>,
    queue: Arc<WaitQueue>,
}

impl WaitQueues {
    pub(crate) fn new(max_per_key: usize) -> Self {
        Self { by_key: Mutex::default(), total: AtomicUsize::new(0), max_per_key }
    }

    /// Joins the line for `key`; `None` if it is full.
    pub(super) fn join(&self, key: &[u8]) -> Option<QueuePlace<'_>> {
        let mut by_key = self.lock();
        if self.waiting() >= self.max_per_key.saturating_mul(QUEUES_MAX) {
            return None;
        }
        let (line, count) = by_key.entry(key.into()).or_default();
        if *count >= self.max_per_key {
            return None;
        }
        *count += 1;
        self.total.fetch_add(1, Ordering::Release);
        Some(QueuePlace { queues: self, key: key.into(), queue: Arc::clone(line) })
    }

    /// Wakes the first waiter for `key`. A waiter that joins too late to be seen here calls the
    /// store after the change.
    pub(crate) fn wake_first(&self, key: &[u8]) {
        if self.waiting() > 0
            && let Some((line, _)) = self.lock().get(key)
        {
            line.set_ready(0);
            line.changed.notify_one();
        }
    }

    fn leave(&self, key: &[u8]) {
        let mut by_key = self.lock();
        self.total.fetch_sub(1, Ordering::Release);
        let Some((_, count)) = by_key.get_mut(key) else { return };
        *count -= 1;
        if *count == 0 {
            by_key.remove(key);
        }
    }

    /// The number of waiters in all lines.
    pub(super) fn waiting(&self) -> usize {
        self.total.load(Ordering::Acquire)
    }

    /// Safe after a panic: no code here panics half-way through a change.
    fn lock(&self) -> MutexGuard<'_, QueuesByKey> {
        crate::sync::lock(&self.by_key)
    }
}

impl WaitQueue {
    /// Waits until all earlier waiters are gone.
    pub(super) async fn wait_for_front(&self) -> QueueFront<'_> {
        QueueFront { line: self, _lock: self.front.lock().await }
    }

    pub(super) fn set_ready(&self, ready_us: u64) {
        self.ready_us.store(ready_us, Ordering::Relaxed);
    }

    pub(super) fn ready_after(&self, now_us: u64) -> Duration {
        Duration::from_micros(self.ready_us.load(Ordering::Relaxed).saturating_sub(now_us))
    }
}

impl QueuePlace<'_> {
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn line(&self) -> &WaitQueue {
        &self.queue
    }
}

impl Drop for QueueFront<'_> {
    fn drop(&mut self) {
        self.line.set_ready(0);
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.queues.leave(&self.key);
    }
}
