//! Resets: the instants at which operators reset keys, for give-backs of earlier charges.

use super::table::address::CellAddress;
use crate::sync::{AtomicU64, Ordering, lock_mutex};
use std::collections::HashMap;
use std::sync::Mutex;

/// How long a reset is remembered: as long as the longest reservation. A request in flight may last
/// longer.
pub(crate) const REMEMBERED_US: u64 = 3_600_000_000;

/// Limit of keys.
const KEYS_MAX: usize = 16_384;

/// The latest reset of each key. Only resets and give-backs look here.
#[derive(Debug, Default)]
pub(crate) struct Resets {
    /// The latest instant; 0 without one. Give-backs of later charges need no lock.
    latest_us: AtomicU64,
    table: Mutex<ResetTable>,
}

#[derive(Debug, Default)]
struct ResetTable {
    by_key: HashMap<CellAddress, u64>,
    /// Counts for all keys, after there were too many.
    every_key_us: Option<u64>,
}

impl Resets {
    /// Records a reset. `was_known`: the key had state, so there are charges to give back.
    pub(crate) fn record(&self, key: CellAddress, now_us: u64, was_known: bool) {
        let mut table = lock_mutex(&self.table);
        if !was_known && !table.by_key.contains_key(&key) {
            return;
        }
        if table.by_key.len() >= KEYS_MAX {
            table.forget_old(now_us);
        }
        if table.by_key.len() >= KEYS_MAX {
            // Give-backs may return too little, never too much.
            table.by_key.clear();
            table.every_key_us = Some(now_us);
        }
        table.by_key.insert(key, now_us);
        self.latest_us.fetch_max(now_us, Ordering::Relaxed);
    }

    /// Whether the key was reset since a charge at `charged_us`.
    pub(crate) fn is_reset_since(&self, key: CellAddress, charged_us: u64, now_us: u64) -> bool {
        if charged_us > self.latest_us.load(Ordering::Relaxed) {
            return false;
        }
        let table = lock_mutex(&self.table);
        let resets = [table.by_key.get(&key).copied(), table.every_key_us];
        let counts = |reset_us: u64| charged_us <= reset_us && is_remembered(reset_us, now_us);
        resets.into_iter().flatten().any(counts)
    }

    /// Drops the resets that are not remembered any more.
    pub(crate) fn sweep(&self, now_us: u64) {
        if self.latest_us.load(Ordering::Relaxed) > 0 {
            let mut table = lock_mutex(&self.table);
            table.forget_old(now_us);
            self.latest_us.store(table.latest_us(), Ordering::Relaxed);
        }
    }
}

impl ResetTable {
    fn forget_old(&mut self, now_us: u64) {
        self.by_key.retain(|_, reset_us| is_remembered(*reset_us, now_us));
        self.every_key_us = self.every_key_us.filter(|reset_us| is_remembered(*reset_us, now_us));
    }

    fn latest_us(&self) -> u64 {
        self.by_key.values().copied().chain(self.every_key_us).max().unwrap_or(0)
    }
}

/// No charge was made before instant zero, where clocks of tests start.
const fn is_remembered(reset_us: u64, now_us: u64) -> bool {
    reset_us > 0 && now_us < reset_us.saturating_add(REMEMBERED_US)
}
