//! What happened to a front end's connections.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counters of one front end, shared between its threads and whoever shows them. Each only ever
/// grows, but for [`open_attributes`](Self::open).
#[derive(Debug, Default)]
pub struct Stats {
    pub(super) open: AtomicUsize,
    pub(super) accepted: AtomicU64,
    pub(super) accept_errors: AtomicU64,
    pub(super) handshake_errors: AtomicU64,
    /// Which kinds of these failures were logged: one bit for each.
    pub(super) handshake_reasons: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) panics: AtomicU64,
}

impl Stats {
    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Connections accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Times that accepting failed, mostly for want of file descriptors.
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Relaxed)
    }

    /// TLS handshakes that failed.
    pub fn handshake_errors(&self) -> u64 {
        self.handshake_errors.load(Relaxed)
    }

    /// Connections closed at a deadline.
    pub fn expired(&self) -> u64 {
        self.expired.load(Relaxed)
    }

    /// Idle connections closed to make room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Connections cut at the end of a drain, with what was under way on them.
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
