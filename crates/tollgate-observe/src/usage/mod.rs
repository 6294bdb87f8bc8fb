//! Usage trail: units admitted, refused and given back, by key, limit and interval.
//!
//! A decision adds to a map in one of many shards, so it waits for no disk. A thread writes each
//! interval after its end. Memory is bounded: `max_keys` keys for each of at most three intervals.
//! These are the current one, one being written, and one held up by a full disk. A key needs about
//! 120 bytes plus its length.

mod chain;
mod format;
mod key_quota;
mod reservations;
mod shard;
#[cfg(test)]
mod tests;
mod thread;
mod writer;

pub use format::{GapLine, PreviousFile, UsageHeader, UsageLine, UsageRow};
pub use thread::UsageThread;
pub use writer::UsageError;

use ahash::RandomState;
use key_quota::KeyQuota;
use reservations::Reservations;
use shard::{UsageShard, UsageUnits};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tollgate::engine::{ObservedAdjustment, ObservedDecision, ReservedUnits};
use tollgate_net::lock;
use tollgate_policy::limit::Limit;
use tollgate_policy::settings;

const SHARDS: usize = 256;

/// Units by key, until the writer thread takes them.
pub struct UsageTrail {
    shards: Box<[Mutex<UsageShard>]>,
    hasher: RandomState,
    every_us: u64,
    /// The keys of the current interval, over all shards.
    key_quota: KeyQuota,
    /// The limit and the key index of each state id seen.
    states: Mutex<BTreeMap<u64, StateLimit>>,
    reservations: Mutex<Reservations>,
    /// Decisions whose key was left out, because the interval had `max_keys` keys.
    overflowed: AtomicU64,
    /// Rows written. `lost_rows` counts the lost ones.
    written_rows: AtomicU64,
    lost_rows: AtomicU64,
}

/// The limit of a state id, and the index of its key.
#[derive(Clone, Debug)]
struct StateLimit {
    limit: Arc<Limit>,
    key_index: usize,
}

/// The identity of a charge: time, state id, tier and key.
struct Charged<'a> {
    now_us: u64,
    state_id: u64,
    tier: &'a str,
    key: &'a [u8],
}

/// The counters of a trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageStats {
    /// Rows written to files.
    pub written_rows: u64,
    /// Rows that could not be written in time.
    pub lost_rows: u64,
    /// Decisions whose key was left out, because the interval had `max_keys` keys.
    pub overflowed: u64,
}

impl UsageTrail {
    /// Creates an empty trail.
    pub fn new(settings: &settings::Usage) -> Self {
        let every_us = u64::try_from(settings.every.as_micros()).unwrap_or(u64::MAX);
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            every_us: every_us.max(1),
            key_quota: KeyQuota::new(settings.keys_max),
            states: Mutex::default(),
            reservations: Mutex::default(),
            overflowed: AtomicU64::new(0),
            written_rows: AtomicU64::new(0),
            lost_rows: AtomicU64::new(0),
        }
    }

    /// The counters.
    pub fn stats(&self) -> UsageStats {
        UsageStats {
            written_rows: self.written_rows.load(Relaxed),
            lost_rows: self.lost_rows.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
        }
    }

    /// Adds a decision.
    pub fn decided(&self, decision: &ObservedDecision<'_>) {
        let selected = decision.selected;
        let refused = if decision.refuses { decision.asked } else { 0 };
        let units = UsageUnits { admitted: decision.taken, refused, given_back: 0 };
        // A request without a key cannot be attributed, and a shadow refusal charges nothing.
        if selected.missing || units == UsageUnits::default() {
            return;
        }
        let (state_id, key) = (selected.id, selected.key);
        let tier = decision.tier().unwrap_or_default();
        let charged = Charged { now_us: decision.now_us, state_id, tier, key };
        let is_new = self.add(&charged, units);
        if is_new {
            lock(&self.states).entry(state_id).or_insert_with(|| StateLimit {
                limit: Arc::new(selected.limit.clone()),
                key_index: selected.key_index,
            });
        }
    }

    /// Adds a settlement of an earlier charge.
    pub fn adjusted(&self, adjustment: &ObservedAdjustment<'_>) {
        let ObservedAdjustment { now_us, state_id, key, given_back, taken, .. } = *adjustment;
        let tier = adjustment.tier.unwrap_or_default();
        let units = UsageUnits { admitted: taken, refused: 0, given_back };
        self.add(&Charged { now_us, state_id, tier, key }, units);
    }

    /// Keeps the keys of a reservation until it ends.
    pub fn reserved(&self, now_us: u64, id: &str, ttl_us: u64, of: &[ReservedUnits<'_>]) {
        lock(&self.reservations).insert(now_us, id, ttl_us, of);
    }

    /// Adds the difference between the units that a reservation charged and the units used.
    pub fn ended(&self, now_us: u64, id: &str, used: &[u64]) {
        let Some(charges) = lock(&self.reservations).remove(id) else { return };
        for (charge, used) in charges.iter().zip(used) {
            let units = UsageUnits {
                admitted: used.saturating_sub(charge.units),
                refused: 0,
                given_back: charge.units.saturating_sub(*used),
            };
            if units != UsageUnits::default() {
                let (state_id, tier, key) = (charge.state_id, &*charge.tier, &*charge.key);
                self.add(&Charged { now_us, state_id, tier, key }, units);
            }
        }
    }

    /// Adds units to a key. Returns whether the key is new in this interval.
    fn add(&self, charged: &Charged<'_>, units: UsageUnits) -> bool {
        thread_local! {
            static ROW_KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        ROW_KEY.with_borrow_mut(|row_key| {
            shard::write_row_key(row_key, charged.state_id, charged.tier, Some(charged.key));
            let interval = charged.now_us / self.every_us;
            let shard = self.shard_of(row_key);
            let has_room = || self.key_quota.take(interval);
            let added = lock(shard).add(interval, row_key, units, has_room);
            if let Some(is_new) = added {
                return is_new;
            }
            self.overflowed.fetch_add(1, Relaxed);
            shard::write_row_key(row_key, charged.state_id, charged.tier, None);
            let shard = self.shard_of(row_key);
            lock(shard).add(interval, row_key, units, || true).unwrap_or(false)
        })
    }

    fn shard_of(&self, row_key: &[u8]) -> &Mutex<UsageShard> {
        &self.shards[self.hasher.hash_one(row_key) as usize % SHARDS]
    }

    fn state(&self, state_id: u64) -> Option<StateLimit> {
        lock(&self.states).get(&state_id).cloned()
    }
}

impl std::fmt::Debug for UsageTrail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UsageTrail").finish_non_exhaustive()
    }
}
