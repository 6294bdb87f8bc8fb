//! The table of leases for busy keys, and the decision of one lease on a charge. The table is
//! bounded, and sharded by a keyed hash of limit and key.

use super::registry::LeasedLimit;
use super::stats::LeaseStats;
use crate::lease::{Holder, Lease, SpentUnits};
use crate::sync::{CachePadded, Lock, lock};
use crate::{Answer, Charge, Origin, ParamsId};
use ahash::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::Notify;
use tollgate_core::{Outcome, Receipt};

const SHARDS: usize = 64;
/// Leases per shard, of about half a KiB each: 16 MiB in total. The store decides other keys.
const SHARD_ENTRIES: usize = 512;
/// Number of counters of requests for keys without a lease.
const HOTNESS_COUNTERS: usize = 1 << 16;
/// Requests in one lifetime that give a key a lease. A lease costs two calls, to ask and to return,
/// so it would not pay for fewer requests.
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
    /// The shards, each with a notification of its renewals.
    shards: Box<[PaddedLeaseShard]>,
    /// The lifetime in the high half, the requests in it in the low half. Keys may share a counter.
    hotness: OnceLock<Box<[AtomicU32]>>,
    /// Addresses by the hash of the state's Redis key.
    by_name: Lock<HashMap<u64, LeaseAddress, RandomState>>,
    process: [u32; 4],
    next_holder: AtomicU64,
    next_request: AtomicU64,
}

type PaddedLeaseShard = CachePadded<(Lock<LeaseShard>, Notify)>;

#[derive(Debug, Default)]
pub(super) struct LeaseShard {
    entries: HashMap<u64, Box<LeaseEntry>, IdentityHasher>,
    pub(super) stats: LeaseStats,
}

/// A hasher for tags, which are already hashes.
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
                .map(|_| CachePadded((Lock::new(LeaseShard::default()), Notify::new())))
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
        // The shard's map uses the lowest and the highest bits.
        LeaseAddress { shard: (tag >> 40) as usize & (SHARDS - 1), tag }
    }

    pub(super) fn new_holder(&self) -> Holder {
        let number = self.next_holder.fetch_add(1, Ordering::Relaxed);
        Holder { process: self.process, number: number & ((1 << 48) - 1) }
    }

    /// Whether these bytes are the name of the process, as the ledger script writes it.
    pub(super) fn is_process(&self, name: &[u8]) -> bool {
        self.process.iter().flat_map(|word| word.to_be_bytes()).eq(name.iter().copied())
    }

    pub(super) fn new_request_number(&self) -> u64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a charge from the key's lease. Also returns whether the lease should be renewed.
    /// `None`: the key has no lease. Keys are found by their 64-bit tag alone.
    #[inline]
    pub(super) fn take(
        &self,
        address: LeaseAddress,
        clock: impl FnOnce() -> u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        counted: bool,
    ) -> Option<(LeaseDecision, bool)> {
        let mut shard = lock(&self.shards[address.shard].0.0);
        let LeaseShard { entries, stats } = &mut *shard;
        let entry = entries.get_mut(&address.tag)?;
        // Read under the lock: units may expire while a thread waits for the lock.
        let now_us = clock();
        if entry.params_id != charge.params_id {
            let should_renew = entry.change_params(now_us, charge.params_id, leased);
            return Some((LeaseDecision::Direct, should_renew));
        }
        let decision = entry.take(now_us, charge, leased, counted);
        let (should_renew, counter) = match &decision {
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
        entry.queued |= should_renew;
        Some((decision, should_renew))
    }

    /// Counts a request for a key without a lease. Returns whether a lease would pay.
    pub(super) fn count_request(
        &self,
        address: LeaseAddress,
        now_us: u64,
        leased: &LeasedLimit,
    ) -> bool {
        let counters =
            self.hotness.get_or_init(|| (0..HOTNESS_COUNTERS).map(|_| AtomicU32::new(0)).collect());
        let counter = &counters[(address.tag >> 20) as usize & (HOTNESS_COUNTERS - 1)];
        let lifetime = (now_us / leased.terms.lifetime_us.max(1)) as u32 & 0xffff;
        let before = counter.load(Ordering::Relaxed);
        let count = if before >> 16 == lifetime { before & 0xffff } else { 0 };
        // Two threads may count as one, which only delays the lease.
        counter.store(lifetime << 16 | (count + 1).min(0xffff), Ordering::Relaxed);
        count + 1 >= HOT_REQUESTS
    }

    /// Adds a lease for a key, if there is room. Returns whether to send a renewal command.
    pub(super) fn add(
        &self,
        address: LeaseAddress,
        now_us: u64,
        params_id: ParamsId,
        (name, slot): (Vec<u8>, u16),
    ) -> bool {
        let mut shard = lock(&self.shards[address.shard].0.0);
        let entries = &mut shard.entries;
        if entries.contains_key(&address.tag) {
            return false;
        }
        if entries.len() >= SHARD_ENTRIES {
            // Evicts a lease that holds nothing and has nothing to return. It could still re-assert
            // a lost ledger, which is given up when space is short.
            let is_idle = |one: &mut LeaseEntry| {
                !one.queued && one.lease.holds_nothing(now_us) && !one.lease.should_return(now_us)
            };
            let mut all = entries.iter_mut();
            let idle = all.find_map(|(tag, one)| is_idle(one).then_some(*tag));
            let Some(tag) = idle else { return false };
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
            is_grant_discarded: false,
            params_changed_us: now_us,
        };
        entries.insert(address.tag, Box::new(entry));
        true
    }

    /// The notification after each renewal in the shard.
    pub(super) fn renewed(&self, address: LeaseAddress) -> &Notify {
        &self.shards[address.shard].0.1
    }

    /// Puts back the units of a request that another limit refused.
    pub(super) fn refund(&self, address: LeaseAddress, now_us: u64, spent: &SpentUnits) {
        self.with(address, |entry, stats| {
            stats.spent = stats.spent.saturating_sub(spent.units);
            stats.local = stats.local.saturating_sub(1);
            entry.lease.refund(now_us, spent);
            stats.stranded += entry.lease.take_stranded();
        });
    }

    pub(super) fn uncount_refusal(&self, address: LeaseAddress) {
        self.count(address, |_, stats| stats.refused = stats.refused.saturating_sub(1));
    }

    /// Runs `work` on the lease at `address`, if there is one.
    pub(super) fn with<T>(
        &self,
        address: LeaseAddress,
        work: impl FnOnce(&mut LeaseEntry, &mut LeaseStats) -> T,
    ) -> Option<T> {
        let mut shard = lock(&self.shards[address.shard].0.0);
        let LeaseShard { entries, stats } = &mut *shard;
        entries.get_mut(&address.tag).map(|entry| work(entry, stats))
    }

    /// Runs `work` on the counters of a key's shard, and on its lease if there is one.
    pub(super) fn count(
        &self,
        address: LeaseAddress,
        work: impl FnOnce(Option<&mut LeaseEntry>, &mut LeaseStats),
    ) {
        let mut shard = lock(&self.shards[address.shard].0.0);
        let LeaseShard { entries, stats } = &mut *shard;
        work(entries.get_mut(&address.tag).map(|entry| &mut **entry), stats);
    }

    pub(super) fn find_by_name(&self, name: &[u8]) -> Option<LeaseAddress> {
        lock(&self.by_name).get(&self.hash_name(name)).copied()
    }

    /// Visits every lease, shard by shard. Drops a lease if `keep` returns `None`. Returns the
    /// leases for which it returns `true`.
    pub(super) fn sweep(
        &self,
        mut keep: impl FnMut(&mut LeaseEntry, &mut LeaseStats) -> Option<bool>,
    ) -> Vec<LeaseAddress> {
        let mut found = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let mut shard = lock(&shard.0.0);
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

    pub(super) fn stats(&self) -> LeaseStats {
        let mut all = LeaseStats::default();
        for shard in &self.shards {
            let shard = lock(&shard.0.0);
            all.add(&shard.stats);
            all.leases += shard.entries.len() as u64;
            all.held += shard.entries.values().map(|entry| entry.lease.held()).sum::<u64>();
        }
        all
    }

    fn hash_name(&self, name: &[u8]) -> u64 {
        self.hashes.hash_one(name)
    }
}

impl LeaseEntry {
    /// Switches to other params, and returns the units of the old ones. Returns whether to send a
    /// renewal command. The store decides a key that alternates between params.
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

/// A lease, with the Redis key of its limit's state.
#[derive(Debug)]
pub(super) struct LeaseEntry {
    pub(super) lease: Lease,
    pub(super) params_id: ParamsId,
    pub(super) name: Box<[u8]>,
    pub(super) slot: u16,
    /// Whether a renewal command for this lease is queued.
    pub(super) queued: bool,
    /// The largest cost that did not fit, since the last request for units.
    pub(super) unmet_cost: u64,
    /// Whether the store may have lost this lease.
    pub(super) must_reassert: bool,
    /// The earliest time of the next renewal after a failure.
    pub(super) backoff_until_us: u64,
    /// Whether the store answered the failed renewal, but its grant could not be verified.
    pub(super) is_grant_discarded: bool,
    /// The time of the last change of the limit's params.
    pub(super) params_changed_us: u64,
}

/// The decision of a lease on a charge.
#[derive(Debug)]
pub(crate) enum LeaseDecision {
    /// The units were taken from the lease.
    Spent(Answer, SpentUnits),
    /// The store recently replied that nothing is left.
    Refused(Answer),
    /// The store decides: the key has no lease, its lease has other params, or the process ends.
    Direct,
    /// The lease is too small, and a renewal is in flight.
    Wait,
    /// The lease is too small, and the last renewal failed.
    Failed,
    /// Grace period: the store lost data, and the units left are unknown.
    GracePeriod,
}

impl LeaseEntry {
    /// Takes a charge from the lease, or returns the reason why not.
    #[inline]
    pub(super) fn take(
        &mut self,
        now_us: u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        counted: bool,
    ) -> LeaseDecision {
        // A cost that never fits is no demand, and the store need not be asked while the units left
        // are known.
        if charge.cost > leased.cost_max {
            return if self.lease.snapshot().is_recent(now_us, leased.terms.lifetime_us / 2) {
                LeaseDecision::Refused(self.refusal(now_us, charge, leased))
            } else {
                LeaseDecision::Direct
            };
        }
        let spent = if counted {
            self.lease.spend_counted(now_us, charge.cost)
        } else {
            self.lease.spend(now_us, charge.cost)
        };
        if let Some(spent) = spent {
            return LeaseDecision::Spent(self.answer(now_us, charge, leased, &spent), spent);
        }
        if now_us < self.lease.snapshot().grace_until_us {
            return LeaseDecision::GracePeriod;
        }
        if now_us < self.lease.ask_not_before_us() {
            return LeaseDecision::Refused(self.refusal(now_us, charge, leased));
        }
        if now_us < self.backoff_until_us && !self.lease.has_request_in_flight() {
            let answers = self.is_grant_discarded;
            return if answers { LeaseDecision::Direct } else { LeaseDecision::Failed };
        }
        self.unmet_cost = self.unmet_cost.max(charge.cost);
        LeaseDecision::Wait
    }

    /// Whether to ask the store for more units.
    #[inline]
    pub(super) fn should_renew(&self, now_us: u64, need: u64) -> bool {
        !self.queued && now_us >= self.backoff_until_us && self.lease.should_ask(now_us, need)
    }

    /// Units of this lease, plus the units left in the store's last reply.
    fn known_remaining(&self, now_us: u64, leased: &LeasedLimit) -> u64 {
        let left = self.lease.snapshot().left;
        self.lease.spendable(now_us).saturating_add(left).min(leased.capacity)
    }

    fn answer(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        spent: &SpentUnits,
    ) -> Answer {
        let reset_after_us = self.lease.snapshot().reset_us.saturating_sub(now_us);
        let mut outcome = Outcome::admitting(leased.capacity);
        outcome.remaining = self.known_remaining(now_us, leased);
        outcome.reset_after_us = reset_after_us;
        outcome.more_after_us = (reset_after_us > 0).then_some(reset_after_us);
        // The units were counted at their grant.
        let receipt = Receipt { cost: charge.cost, at_us: spent.granted_us, ..Receipt::default() };
        Answer { outcome, blocked: false, receipt: Some(receipt), origin: Origin::Lease }
    }

    /// The store's last refusal. Its wait does not end before the store is asked again.
    fn refusal(&self, now_us: u64, charge: &Charge<'_>, leased: &LeasedLimit) -> Answer {
        let snapshot = self.lease.snapshot();
        let asks_us = self.lease.ask_not_before_us();
        let wait_us = snapshot.retry_us.unwrap_or(asks_us).max(asks_us).saturating_sub(now_us);
        let mut outcome = Outcome::refusing(leased.capacity, wait_us);
        outcome.remaining = self.known_remaining(now_us, leased).min(charge.cost.saturating_sub(1));
        outcome.reset_after_us = snapshot.reset_us.saturating_sub(now_us).max(wait_us);
        if charge.cost > leased.cost_max {
            outcome.retry_after_us = None;
        }
        Answer { outcome, blocked: false, receipt: None, origin: Origin::CachedRefusal }
    }
}
