//! How many requests wait for one server, and how many may.

use crate::{StoreError, StoreErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all queues for one server share: how many requests wait, and how many may.
#[derive(Debug)]
pub(in super::super) struct Room {
    taken: AtomicUsize,
    most: usize,
}

impl Room {
    pub(in super::super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), most })
    }

    /// How many requests wait.
    pub(in super::super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Lets so many more wait, if there is room.
    pub(super) fn enter(&self, requests: usize) -> Result<(), StoreError> {
        let taken = self.taken.fetch_add(requests, Ordering::Relaxed);
        if taken + requests <= self.most {
            return Ok(());
        }
        self.leave(requests);
        Err(StoreError::new(StoreErrorKind::Busy, "too many requests wait"))
    }

    /// Lets those wait again who have left.
    pub(super) fn enter_again(&self, requests: usize) {
        self.taken.fetch_add(requests, Ordering::Relaxed);
    }

    pub(super) fn leave(&self, requests: usize) {
        self.taken.fetch_sub(requests, Ordering::Relaxed);
    }
}
