//! The memory budget: bytes in use, and the cap.

use crate::sync::{AtomicU64, Ordering};

/// One counter for the whole store. It changes with allocations, not with decisions.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(max_bytes: u64, used: u64) -> Self {
        Self { max_bytes, used: AtomicU64::new(used) }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.used() > self.max_bytes
    }

    /// Whether more than seven eighths are in use, so that idle state goes at once.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.used() > self.max_bytes / 8 * 7
    }

    /// Whether `bytes` more stay within the cap.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.used().saturating_add(bytes as u64) <= self.max_bytes
    }

    /// Takes `bytes` unless they exceed the cap.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let fits =
            |used: u64| used.checked_add(bytes as u64).filter(|used| *used <= self.max_bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Takes `bytes`, beyond the cap if need be: for state that must not be lost.
    pub(crate) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}
