//! Deny cache: remembers refusals, so that a flood on a refused key does not reach the store.

mod entry;
mod lookup;
mod single_flight;

pub(crate) use single_flight::SingleFlight;

use ahash::RandomState;
use entry::{DenyEntry, EntryRole};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tollgate_store::{Charge, StateKey};

use crate::engine::Rules;
use crate::gate::RequestedLimit;
use crate::limiter::micros;
use crate::sync::lock;

/// The number of shards, each with its own lock.
const SHARDS: usize = 16;

/// Caches the store's row for each (limit, key) of a refused request, for `max_age` at most.
///
/// The cache refuses a request if a cached refusal applies and all other rows are cached. The
/// verdict has the same rows as without the cache. A refusal applies under the same rules, to the
/// same parameters, and to costs that are not lower.
///
/// The cache never refuses for three kinds of limits. Slots can return at any moment. Leased limits
/// remember refusals themselves. Penalties that have not blocked the key yet must count refusals.
///
/// When an entry is too old, one request calls the store. Others are refused until it is answered.
#[derive(Debug)]
pub struct DenyCache {
    shards: [Mutex<Shard>; SHARDS],
    hashers: [RandomState; 2],
    entries_per_shard: usize,
    max_age_us: u64,
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<u128, DenyEntry, RandomState>,
    /// The names of entries by the hash of the store's key: the end of another node's reservation
    /// has only this key.
    names_by_state: HashMap<u64, u128, RandomState>,
    /// Grows when an entry is dropped. A refusal from an earlier epoch must not be cached.
    epoch: u64,
    /// The time before which the shard does not look for room again.
    full_until_us: u64,
}

/// The epoch of each charge's shard before the store call.
pub(crate) type InvalidationEpochs = SmallVec<[u64; 4]>;

impl DenyCache {
    /// Creates a cache of at most `entries` rows, each for at most `max_age`.
    pub fn new(entries: usize, max_age: Duration) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hashers: [RandomState::new(), RandomState::new()],
            entries_per_shard: entries.div_ceil(SHARDS),
            max_age_us: micros(max_age),
        }
    }

    /// The epochs before the store call. A request that only leases decide is not cached.
    pub(crate) fn epochs(
        &self,
        rules: &Rules,
        limits: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
    ) -> InvalidationEpochs {
        if limits.iter().all(|limit| rules.is_leased(&limit.selected)) {
            return charges.iter().map(|_| 0).collect();
        }
        let shard = |charge: &Charge<'_>| self.locate(charge.limit, charge.key).0;
        charges.iter().map(|charge| lock(&self.shards[shard(charge)]).epoch).collect()
    }

    fn insert(&self, charge: &Charge<'_>, mut entry: DenyEntry, learnt_epoch: u64) {
        let (shard, name) = self.locate(charge.limit, charge.key);
        let mut shard = lock(&self.shards[shard]);
        let Shard { entries, names_by_state, epoch, full_until_us } = &mut *shard;
        if *epoch != learnt_epoch {
            return;
        }
        let now_us = entry.learnt_us;
        if let Some(old) = entries.get(&name) {
            entry.inherit(old);
        } else if entries.len() >= self.entries_per_shard {
            // A row that does not fit costs a call to the store, as without a cache.
            if entry.role != EntryRole::Refuses || now_us < *full_until_us {
                return;
            }
            // A refusal saves a call; other rows only complete an answer.
            entries.retain(|_, old| now_us < old.expires_us && old.role == EntryRole::Refuses);
            names_by_state.retain(|_, name| entries.contains_key(name));
            if entries.len() >= self.entries_per_shard {
                *full_until_us = now_us.saturating_add(self.max_age_us / 8);
                return;
            }
        }
        entries.insert(name, entry);
        names_by_state.insert(entry.state_hash, name);
    }

    /// Drops the rows of a key, because units were given back to it.
    pub(crate) fn forget(&self, limit: u64, key: &[u8]) {
        let (shard, name) = self.locate(limit, key);
        let mut shard = lock(&self.shards[shard]);
        shard.epoch += 1;
        shard.forget(name);
    }

    /// Marks the rows of charged keys. A limit with a penalty may refuse next, and that refusal
    /// must reach the store.
    pub(crate) fn mark_spent(&self, charges: &[Charge<'_>]) {
        for charge in charges.iter().filter(|charge| charge.penalty.is_some()) {
            let (shard, name) = self.locate(charge.limit, charge.key);
            if let Some(entry) = lock(&self.shards[shard]).entries.get_mut(&name) {
                entry.spent = true;
            }
        }
    }

    /// Drops the rows of a key, given by its key in the store.
    pub(crate) fn forget_state(&self, state_key: &StateKey) {
        let state_hash = self.state_hash(state_key);
        for shard in &self.shards {
            let mut shard = lock(shard);
            // The shard of a refusal in flight is unknown, so every epoch grows.
            shard.epoch += 1;
            if let Some(name) = shard.names_by_state.get(&state_hash).copied() {
                shard.forget(name);
            }
        }
    }

    fn state_hash(&self, state_key: &StateKey) -> u64 {
        self.hashers[0].hash_one(state_key)
    }

    /// The shard and the name of a key: two keyed hashes, so that clients cannot cause collisions.
    fn locate(&self, limit: u64, key: &[u8]) -> (usize, u128) {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one((limit, key)));
        (low as usize % SHARDS, u128::from(high) << 64 | u128::from(low))
    }
}

impl Shard {
    fn forget(&mut self, name: u128) {
        if let Some(entry) = self.entries.remove(&name) {
            self.names_by_state.remove(&entry.state_hash);
        }
    }
}
