//! Connection counters of a front end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Connection counters of one front end. All except [`open`](Self::open) only grow.
#[derive(Debug, Default)]
pub struct Stats {
    pub(super) open: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) accept_errors: AtomicU64,
    pub(super) handshake_errors: AtomicU64,
    /// One bit for each kind of handshake error already logged.
    pub(super) handshake_reasons: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) panics: AtomicU64,
}

impl Stats {
    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }

    /// Connections accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Failures to accept, mostly from a lack of file descriptors.
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Relaxed)
    }

    /// Connections closed at a deadline.
    pub fn expired(&self) -> u64 {
        self.expired.load(Relaxed)
    }

    /// Idle connections closed to make room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Connections closed at the end of a drain with requests in flight.
    pub fn cut(&self) -> u64 {
        self.cut.load(Relaxed)
    }

    /// Requests whose handler panicked.
    pub fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}
