//! Deny cache: remembers refusals, so that a flood on a refused key does not reach the store.

mod entry;
mod lookup;
mod single_flight;

pub(crate) use single_flight::SingleFlight;

use ahash::RandomState;
use entry::{DenyEntry, EntryRole};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_store::{Charge, StateKey};

use crate::Rules;
use crate::gate::RequestedLimit;

/// Locks, each with its own part of the entries.
const SHARDS: usize = 16;

/// Remembers for each (limit, key) of a refused request the row that the store answered, for
/// `max_age` at most.
///
/// A request is refused without the store if a remembered refusal holds and all its other rows are
/// known. The answer has the same rows as without the cache. A refusal holds for the rules it was
/// made under, the same numbers, and costs that are not below.
///
/// Three kinds of limits never refuse from here: slots, which come back at any moment; leased
/// limits, whose store has its own memory; and penalties that have not blocked the key yet, since
/// their refusals count.
///
/// Once an entry is too old one request asks the store, and others are refused as before until it
/// has been answered.
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
    /// The names of entries by hashes of what the store calls them: whoever ends another node's
    /// reservation knows nothing else.
    names_by_state: HashMap<u64, u128, RandomState>,
    /// How often something was forgotten: a refusal from before that must not be learnt after it.
    epoch: u64,
    /// Looking for room again makes no sense until then.
    full_until_us: u64,
}

/// What was forgotten before a request was asked, charge by charge.
pub(crate) type InvalidationEpochs = SmallVec<[u64; 4]>;

impl DenyCache {
    /// At most `entries` rows, none of them for longer than `max_age`.
    pub fn new(entries: usize, max_age: Duration) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hashers: [RandomState::new(), RandomState::new()],
            entries_per_shard: entries.div_ceil(SHARDS),
            max_age_us: u64::try_from(max_age.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// The moment before the store is asked. Nothing is learnt of a request that only leases
    /// decide.
    pub(crate) fn epochs(
        &self,
        rules: &Rules,
        asked: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
    ) -> InvalidationEpochs {
        if asked.iter().all(|one| rules.is_leased(&one.selected)) {
            return charges.iter().map(|_| 0).collect();
        }
        let forgets =
            |charge: &Charge<'_>| lock(&self.shards[self.locate(charge.limit, charge.key).0]).epoch;
        charges.iter().map(forgets).collect()
    }

    fn insert(&self, charge: &Charge<'_>, mut entry: DenyEntry, forgets: u64) {
        let (shard, name) = self.locate(charge.limit, charge.key);
        let mut shard = lock(&self.shards[shard]);
        let Shard { entries, names_by_state: places, epoch: now_forgets, full_until_us } =
            &mut *shard;
        if *now_forgets != forgets {
            return;
        }
        let now_us = entry.learnt_us;
        if let Some(old) = entries.get(&name) {
            entry.inherit(old);
        } else if entries.len() >= self.entries_per_shard {
            // All of them still hold, so the flood is wide: what is left out is asked of the store,
            // as without a cache.
            let is_refusal = entry.role == EntryRole::Refuses;
            if !is_refusal || now_us < *full_until_us {
                return;
            }
            // A refusal spares the store a call, and other rows only complete an answer.
            entries.retain(|_, old| now_us < old.expires_us && old.role == EntryRole::Refuses);
            places.retain(|_, name| entries.contains_key(name));
            if entries.len() >= self.entries_per_shard {
                *full_until_us = now_us.saturating_add(self.max_age_us / 8);
                return;
            }
        }
        entries.insert(name, entry);
        places.insert(entry.state_hash, name);
    }

    /// Forgets the refusals of one key: something was given back to it.
    pub(crate) fn forget(&self, limit: u64, key: &[u8]) {
        let (shard, name) = self.locate(limit, key);
        let mut shard = lock(&self.shards[shard]);
        shard.epoch += 1;
        shard.forget(name);
    }

    /// Notes that units were taken from these keys. A limit with a penalty may refuse next, and
    /// that refusal must reach the store. So the next request asks for its row again.
    pub(crate) fn mark_spent(&self, charges: &[Charge<'_>]) {
        for charge in charges.iter().filter(|charge| charge.penalty.is_some()) {
            let (shard, name) = self.locate(charge.limit, charge.key);
            if let Some(entry) = lock(&self.shards[shard]).entries.get_mut(&name) {
                entry.spent = true;
            }
        }
    }

    /// Forgets the rows of a key, given only the store's name for it.
    pub(crate) fn forget_state(&self, place: &StateKey) {
        let place = self.state_hash(place);
        for shard in &self.shards {
            let mut shard = lock(shard);
            // Which shard a refusal on its way belongs to is not known here.
            shard.epoch += 1;
            if let Some(name) = shard.names_by_state.get(&place).copied() {
                shard.forget(name);
            }
        }
    }

    fn state_hash(&self, place: &StateKey) -> u64 {
        self.hashers[0].hash_one(place)
    }

    /// 128 bits of two keyed hashes name a key: nobody can make two collide.
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

/// A panic elsewhere leaves the entries whole, or a place without one: each change is a single
/// insertion or removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
