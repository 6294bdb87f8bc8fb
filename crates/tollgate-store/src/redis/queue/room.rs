//! How many requests wait for one server, and how many may.

use crate::{StoreError, StoreErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all queues for one server share: how many requests wait, and how many may.
#[derive(Debug)]
pub(in super::super) struct QueueLimit {
    taken: AtomicUsize,
    max: usize,
}

impl QueueLimit {
    pub(in super::super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), max: most })
    }

    /// How many requests wait.
    pub(in super::super) fn waiting(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Lets so many more wait, if there is room.
    pub(super) fn acquire(&self, requests: usize) -> Result<(), StoreError> {
        let taken = self.taken.fetch_add(requests, Ordering::Relaxed);
        if taken + requests <= self.max {
            return Ok(());
        }
        self.release(requests);
        Err(StoreError::new(StoreErrorKind::Busy, "too many requests wait"))
    }

    /// Lets those wait again who have left.
    pub(super) fn acquire_unchecked(&self, requests: usize) {
        self.taken.fetch_add(requests, Ordering::Relaxed);
    }

    pub(super) fn release(&self, requests: usize) {
        self.taken.fetch_sub(requests, Ordering::Relaxed);
    }
}
