//! Who waits for which key, in which order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How many lines' worth of waiters there may be in all.
const QUEUES_MAX: usize = 64;

/// The line for each key that somebody waits for.
#[derive(Debug)]
pub(crate) struct WaitQueues {
    by_key: Mutex<QueuesByKey>,
    /// How many wait in all. Changes under the lock; read without it by those who only want to know
    /// whether anybody does.
    total: AtomicUsize,
    max_per_key: usize,
}

/// Each line, and how many wait in it.
type QueuesByKey = HashMap<Box<[u8]>, (Arc<WaitQueue>, usize)>;

/// The line for one key.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    /// Held by whoever is first. The lock is fair: those behind get it in the order in which they
    /// asked.
    front: tokio::sync::Mutex<()>,
    /// Told when something was given back, so that the first may ask again.
    pub(super) changed: Notify,
    /// The first is not admitted before this, if time alone decides.
    ready_us: AtomicU64,
}

/// Being first. Whoever comes next does not inherit the wait of one who leaves.
pub(super) struct QueueFront<'a> {
    line: &'a WaitQueue,
    _lock: tokio::sync::MutexGuard<'a, ()>,
}

/// A place in a line. Dropping it leaves the line.
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

    /// A place at the end of the line for `key`; `None` when it is full.
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

    /// Wakes the first in line for `key`, if anybody waits. Who joins too late to be seen here asks
    /// the store after whatever has changed there.
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

    /// How many wait, in all lines.
    pub(super) fn waiting(&self) -> usize {
        self.total.load(Ordering::Acquire)
    }

    /// Also after a panic elsewhere: nothing here panics half-way through a change.
    fn lock(&self) -> MutexGuard<'_, QueuesByKey> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitQueue {
    /// Being first, once all who came before are gone.
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
