//! Resets: the instants at which operators reset keys, for give-backs of earlier charges.

use super::table::address::CellAddress;
use crate::sync::{AtomicUsize, Ordering, lock_mutex};
use std::collections::HashMap;
use std::sync::Mutex;

/// How long a reset is remembered. No reservation lasts longer.
pub(crate) const REMEMBERED_US: u64 = 3_600_000_000;

/// Limit of keys.
const KEYS_MAX: usize = 16_384;

/// The latest reset of each key. Only resets and give-backs look here.
#[derive(Debug, Default)]
pub(crate) struct Resets {
    /// The number of instants, so that a give-back rarely needs the lock.
    count: AtomicUsize,
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
        self.count.store(table.len(), Ordering::Relaxed);
    }

    /// Whether the key was reset since a charge at `charged_us`.
    pub(crate) fn is_reset_since(&self, key: CellAddress, charged_us: u64, now_us: u64) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let table = lock_mutex(&self.table);
        let resets = [table.by_key.get(&key).copied(), table.every_key_us];
        let counts = |reset_us: u64| charged_us <= reset_us && is_remembered(reset_us, now_us);
        resets.into_iter().flatten().any(counts)
    }

    /// Drops the resets that are not remembered any more.
    pub(crate) fn sweep(&self, now_us: u64) {
        if self.count.load(Ordering::Relaxed) > 0 {
            let mut table = lock_mutex(&self.table);
            table.forget_old(now_us);
            self.count.store(table.len(), Ordering::Relaxed);
        }
    }
}

impl ResetTable {
    fn forget_old(&mut self, now_us: u64) {
        self.by_key.retain(|_, reset_us| is_remembered(*reset_us, now_us));
        self.every_key_us = self.every_key_us.filter(|reset_us| is_remembered(*reset_us, now_us));
    }

    fn len(&self) -> usize {
        self.by_key.len() + usize::from(self.every_key_us.is_some())
    }
}

/// No charge was made before instant zero, where clocks of tests start.
const fn is_remembered(reset_us: u64, now_us: u64) -> bool {
    reset_us > 0 && now_us < reset_us.saturating_add(REMEMBERED_US)
}
