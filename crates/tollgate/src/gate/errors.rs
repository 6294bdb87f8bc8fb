//! How often the store could not answer, and why.

use super::Gate;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_store::{Store, StoreError, StoreErrorKind};

/// Failures by kind. They come from a store that is slower than any counter, so all threads share
/// these.
#[derive(Debug, Default)]
pub(crate) struct StoreErrorCounters([AtomicU64; StoreErrorKind::ALL.len()]);

impl StoreErrorCounters {
    #[cold]
    pub(crate) fn count(&self, error: &StoreError) {
        let kinds = StoreErrorKind::ALL.iter().zip(&self.0);
        for (_, count) in kinds.filter(|(kind, _)| **kind == error.kind) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S: Store> Gate<S> {
    /// How often the store failed this gate, by kind.
    pub fn store_errors(&self) -> [(StoreErrorKind, u64); StoreErrorKind::ALL.len()] {
        let counts = self.errors.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        std::array::from_fn(|at| (StoreErrorKind::ALL[at], counts[at]))
    }
}
