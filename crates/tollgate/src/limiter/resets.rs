//! Which permits are from before a reset.

use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::LimitParams;

/// How often keys were reset. Some keys share a count, so that there is an end to it; then one of
/// them may get less back than it took.
#[derive(Debug)]
pub(super) struct ResetCounters([AtomicU64; 64]);

impl ResetCounters {
    pub(super) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 64])
    }

    pub(super) fn of(&self, key: &[u8]) -> u64 {
        self.count(key).load(Ordering::Acquire)
    }

    pub(super) fn add(&self, key: &[u8]) {
        self.count(key).fetch_add(1, Ordering::AcqRel);
    }

    fn count(&self, key: &[u8]) -> &AtomicU64 {
        let hash = key
            .iter()
            .fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        &self.0[hash % self.0.len()]
    }
}

/// Whether what was taken is found again by its own date, and by nothing else.
pub(super) const fn is_timestamped(params: &LimitParams) -> bool {
    matches!(params, LimitParams::Concurrency(_) | LimitParams::SlidingLog(_))
}
