//! The leases of this process: sharded by a keyed hash of limit and key, bounded in number, for
//! keys that are asked for often.

use super::entry::{LeaseDecision, LeaseEntry};
use super::registry::LeasedLimit;
use super::stats::LeaseStats;
use crate::lease::{Holder, Lease, SpentUnits};
use crate::sync::{Lock, lock};
use crate::{Charge, ParamsId};
use ahash::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::Notify;

const SHARDS: usize = 64;
/// Leases in a shard, of about half a kibibyte each: 20 MiB for all of them. Keys beyond are
/// decided by the store.
const SHARD_ENTRIES: usize = 512;
/// Places in which requests for keys without a lease are counted.
const HOTNESS_COUNTERS: usize = 1 << 16;
/// Requests within one lifetime from which on a lease pays: it costs two calls, one of them to
/// return what is left.
const HOT_REQUESTS: u32 = 4;

/// A shard, and the key's tag in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseAddress {
    shard: usize,
    tag: u64,
}

/// The leases of this process.
#[derive(Debug)]
pub(super) struct LeaseTable {
    hashes: RandomState,
    shards: Box<[PaddedLeaseShard]>,
    /// For each place the lifetime that it is counting in, and how many requests there were.
    hotness: OnceLock<Box<[AtomicU32]>>,
    /// By hashes of their names, for whoever knows nothing else.
    by_name: Lock<HashMap<u64, LeaseAddress, RandomState>>,
    process: [u32; 4],
    next_holder: AtomicU64,
    next_request: AtomicU64,
}

/// Two shards never share a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct PaddedLeaseShard(Lock<LeaseShard>, Notify);

#[derive(Debug, Default)]
pub(super) struct LeaseShard {
    entries: HashMap<u64, Box<LeaseEntry>, IdentityHasher>,
    pub(super) stats: LeaseStats,
}

/// A tag is a hash already.
#[derive(Clone, Copy, Debug, Default)]
struct IdentityHasher(u64);

impl BuildHasher for IdentityHasher {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for IdentityHasher {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, tag: u64) {
        self.0 = tag;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl LeaseTable {
    pub(super) fn new() -> Self {
        let random = std::hash::RandomState::new();
        let word = |n: u32| random.hash_one(n) as u32;
        Self {
            hashes: RandomState::new(),
            shards: (0..SHARDS)
                .map(|_| PaddedLeaseShard(Lock::new(LeaseShard::default()), Notify::new()))
                .collect(),
            hotness: OnceLock::new(),
            by_name: Lock::new(HashMap::with_hasher(RandomState::new())),
            process: [word(1), word(2), word(3), word(4)],
            next_holder: AtomicU64::new(0),
            next_request: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn address(&self, limit: u64, key: &[u8]) -> LeaseAddress {
        let mut hasher = self.hashes.build_hasher();
        hasher.write(key);
        hasher.write_u64(limit);
        let tag = hasher.finish();
        // A map in a shard goes by the lowest bits and the highest.
        LeaseAddress { shard: (tag >> 40) as usize & (SHARDS - 1), tag }
    }

    pub(super) fn new_holder(&self) -> Holder {
        let number = self.next_holder.fetch_add(1, Ordering::Relaxed);
        Holder { process: self.process, number: number & ((1 << 48) - 1) }
    }

    /// Whether these bytes name the process, as the ledger's script writes them.
    pub(super) fn is_process(&self, name: &[u8]) -> bool {
        self.process.iter().flat_map(|word| word.to_be_bytes()).eq(name.iter().copied())
    }

    pub(super) fn new_request_number(&self) -> u64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a charge from the key's lease, at the instant that `clock` shows then. Also answers
    /// whether the store is to be asked for more.
    #[inline]
    pub(super) fn take(
        &self,
        address: LeaseAddress,
        clock: impl FnOnce() -> u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        counted: bool,
    ) -> Option<(LeaseDecision, bool)> {
        let mut shard = lock(&self.shards[address.shard].0);
        let LeaseShard { entries, stats } = &mut *shard;
        let entry = entries.get_mut(&address.tag)?;
        // Read behind the lock: whoever waited for it must not spend what was good before.
        let now_us = clock();
        if entry.params_id != charge.params_id {
            return Some((
                LeaseDecision::Direct,
                entry.change_params(now_us, charge.params_id, leased),
            ));
        }
        let local = entry.take(now_us, charge, leased, counted);
        let (wants, counter) = match &local {
            LeaseDecision::Spent(..) => {
                stats.spent += charge.cost;
                (entry.should_renew(now_us, 0), &mut stats.local)
            }
            LeaseDecision::Wait => (entry.should_renew(now_us, charge.cost), &mut 0),
            LeaseDecision::Refused(_) => (false, &mut stats.refused),
            LeaseDecision::Direct | LeaseDecision::Failed | LeaseDecision::GracePeriod => {
                (false, &mut 0)
            }
        };
        *counter += 1;
        entry.queued |= wants;
        Some((local, wants))
    }

    /// Counts a request for a key without a lease, and answers whether one would pay.
    pub(super) fn count_request(
        &self,
        address: LeaseAddress,
        now_us: u64,
        leased: &LeasedLimit,
    ) -> bool {
        let warmths =
            self.hotness.get_or_init(|| (0..HOTNESS_COUNTERS).map(|_| AtomicU32::new(0)).collect());
        let warmth = &warmths[(address.tag >> 20) as usize & (HOTNESS_COUNTERS - 1)];
        let lifetime = (now_us / leased.terms.lifetime_us.max(1)) as u32 & 0xffff;
        let before = warmth.load(Ordering::Relaxed);
        let count = if before >> 16 == lifetime { before & 0xffff } else { 0 };
        // Two threads may count as one, which makes it a little later.
        warmth.store(lifetime << 16 | (count + 1).min(0xffff), Ordering::Relaxed);
        count + 1 >= HOT_REQUESTS
    }

    /// Makes a lease for a key that has none, if there is room. The task is to be told of it.
    pub(super) fn add(
        &self,
        address: LeaseAddress,
        now_us: u64,
        params_id: ParamsId,
        (name, slot): (Vec<u8>, u16),
    ) -> bool {
        let mut shard = lock(&self.shards[address.shard].0);
        let entries = &mut shard.entries;
        if entries.contains_key(&address.tag) {
            return false;
        }
        if entries.len() >= SHARD_ENTRIES {
            // What is lost is only the memory of what the store may forget, and nothing that is to
            // go back.
            let is_over = |one: &mut LeaseEntry| {
                !one.queued && one.lease.holds_nothing(now_us) && !one.lease.should_return(now_us)
            };
            let mut all = entries.iter_mut();
            let spent = all.find_map(|(tag, one)| is_over(one).then_some(*tag));
            let Some(tag) = spent else { return false };
            if let Some(gone) = entries.remove(&tag) {
                lock(&self.by_name).remove(&self.hash_name(&gone.name));
            }
        }
        lock(&self.by_name).insert(self.hash_name(&name), address);
        let entry = LeaseEntry {
            lease: Lease::new(self.new_holder(), now_us),
            params_id,
            name: name.into(),
            slot,
            queued: true,
            unmet_cost: 1,
            must_reassert: false,
            backoff_until_us: 0,
            params_changed_us: now_us,
        };
        entries.insert(address.tag, Box::new(entry));
        true
    }

    /// Told whenever something was said about a lease in the same shard.
    pub(super) fn renewed(&self, address: LeaseAddress) -> &Notify {
        &self.shards[address.shard].1
    }

    /// Takes back what a request spent that was refused elsewhere.
    pub(super) fn refund(&self, address: LeaseAddress, now_us: u64, spent: &SpentUnits) {
        self.with(address, |entry, stats| {
            stats.spent = stats.spent.saturating_sub(spent.units);
            stats.local = stats.local.saturating_sub(1);
            entry.lease.refund(now_us, spent);
        });
    }

    /// A refusal that was counted is not the answer after all.
    pub(super) fn uncount_refusal(&self, address: LeaseAddress) {
        self.count(address, |_, stats| stats.refused = stats.refused.saturating_sub(1));
    }

    /// Does something to the lease at `address`, if it is still there.
    pub(super) fn with<T>(
        &self,
        address: LeaseAddress,
        work: impl FnOnce(&mut LeaseEntry, &mut LeaseStats) -> T,
    ) -> Option<T> {
        let mut shard = lock(&self.shards[address.shard].0);
        let LeaseShard { entries, stats } = &mut *shard;
        entries.get_mut(&address.tag).map(|entry| work(entry, stats))
    }

    /// Counts something about a key, and does something to its lease if it has one.
    pub(super) fn count(
        &self,
        address: LeaseAddress,
        work: impl FnOnce(Option<&mut LeaseEntry>, &mut LeaseStats),
    ) {
        let mut shard = lock(&self.shards[address.shard].0);
        let LeaseShard { entries, stats } = &mut *shard;
        work(entries.get_mut(&address.tag).map(|entry| &mut **entry), stats);
    }

    /// Where the lease of a state with this name is.
    pub(super) fn find_by_name(&self, name: &[u8]) -> Option<LeaseAddress> {
        lock(&self.by_name).get(&self.hash_name(name)).copied()
    }

    /// Looks at every lease, a shard at a time, and drops those for which `keep` answers `None`.
    /// Those for which it answers `true` are returned.
    pub(super) fn sweep(
        &self,
        mut keep: impl FnMut(&mut LeaseEntry, &mut LeaseStats) -> Option<bool>,
    ) -> Vec<LeaseAddress> {
        let mut found = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let mut shard = lock(&shard.0);
            let LeaseShard { entries, stats } = &mut *shard;
            entries.retain(|tag, entry| match keep(entry, stats) {
                Some(true) => {
                    found.push(LeaseAddress { shard: number, tag: *tag });
                    true
                }
                Some(false) => true,
                None => {
                    lock(&self.by_name).remove(&self.hash_name(&entry.name));
                    false
                }
            });
        }
        found
    }

    /// The figures of now.
    pub(super) fn stats(&self) -> LeaseStats {
        let mut all = LeaseStats::default();
        for shard in &self.shards {
            let shard = lock(&shard.0);
            all.add(&shard.stats);
            all.leases += shard.entries.len() as u64;
            all.held += shard.entries.values().map(|entry| entry.lease.balance()).sum::<u64>();
        }
        all
    }

    fn hash_name(&self, name: &[u8]) -> u64 {
        self.hashes.hash_one(name)
    }
}

impl LeaseEntry {
    /// The limit has other numbers by now: what is held under the old ones goes back. Answers
    /// whether the task is to be told. A key that goes back and forth between numbers is decided by
    /// the store meanwhile.
    fn change_params(&mut self, now_us: u64, params_id: ParamsId, leased: &LeasedLimit) -> bool {
        if now_us < self.params_changed_us + leased.terms.lifetime_us {
            return false;
        }
        (self.params_id, self.params_changed_us, self.unmet_cost) = (params_id, now_us, 1);
        self.lease.return_all();
        self.lease.clear_refusal();
        !std::mem::replace(&mut self.queued, true)
    }
}
