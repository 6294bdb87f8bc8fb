//! Counters of the memory store.

use crate::sync::{AtomicU64, Ordering, RwLock};
use std::collections::HashMap;
use std::sync::PoisonError;

/// The current figures of a memory store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Cells, overflow cells included.
    pub keys: u64,
    /// Bytes in use, as counted against the cap.
    pub bytes: u64,
    /// Keys evicted although not idle, because the store was full; at least 90 % of their limit
    /// remained.
    pub evicted: u64,
    /// Decisions for new keys in overflow cells, because the store was full of keys that must be
    /// kept.
    pub overflowed: u64,
    /// Refusals that no penalty counted, because memory was short.
    pub uncounted: u64,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) evicted: AtomicU64,
    pub(crate) uncounted: AtomicU64,
    overflowed: RwLock<HashMap<u64, AtomicU64>>,
}

impl Events {
    /// Counts a decision of `limit` in an overflow cell.
    pub(crate) fn overflowed(&self, limit: u64) {
        let counts = self.overflowed.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get(&limit) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        drop(counts);
        let mut counts = self.overflowed.write().unwrap_or_else(PoisonError::into_inner);
        counts.entry(limit).or_insert_with(|| AtomicU64::new(0)).fetch_add(1, Ordering::Relaxed);
    }

    /// Decisions in overflow cells, by limit.
    pub(crate) fn overflowed_by_limit(&self) -> Vec<(u64, u64)> {
        let counts = self.overflowed.read().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(&limit, count)| (limit, count.load(Ordering::Relaxed))).collect()
    }
}
