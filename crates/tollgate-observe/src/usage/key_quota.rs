//! The keys that an interval may still take.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts the keys of the current interval. New keys alone touch it.
#[derive(Debug)]
pub(super) struct KeyQuota {
    keys_max: u32,
    /// The low half of the interval's number, then its keys.
    taken: AtomicU64,
}

impl KeyQuota {
    pub(super) fn new(keys_max: usize) -> Self {
        let keys_max = u32::try_from(keys_max).unwrap_or(u32::MAX);
        Self { keys_max, taken: AtomicU64::new(0) }
    }

    /// Takes room for a new key. Returns whether there was room. A key of a past interval counts
    /// for the current one.
    pub(super) fn take(&self, interval: u64) -> bool {
        let interval = interval as u32;
        let take = |taken: u64| {
            let (current, keys) = ((taken >> 32) as u32, taken as u32);
            let (current, keys) = if interval > current { (interval, 0) } else { (current, keys) };
            (keys < self.keys_max).then(|| u64::from(current) << 32 | u64::from(keys + 1))
        };
        self.taken.fetch_update(Relaxed, Relaxed, take).is_ok()
    }
}
