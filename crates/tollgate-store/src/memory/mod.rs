//! The memory store: bounded, sharded, without allocation for known keys.
//!
//! A limit and a key become a 64-bit hash. Twelve bits, of the key alone, choose a shard, each with
//! its own lock. The other bits are the tag of a cell, with the id of the params that its state was
//! written under. A cell has 16 or 24 bytes and holds the state; larger states live in the shard's
//! slab.
//!
//! A request with several charges locks their shards in ascending order. Known keys are charged as
//! their limits answer, and get their words back before the unlock if a limit refuses. Charges on
//! one key need one lock.

mod decide;
mod evict;
mod options;
mod params_registry;
mod reservations;
pub(crate) mod resets;
mod shard;
mod stats;
mod table;
#[cfg(all(test, loom))]
mod tests;

use crate::raw::slots::Garbage;
use crate::sync::{AtomicUsize, CachePadded, Lock, Ordering, lock};
use crate::{
    Answer, Answers, Charge, Clock, LeaseStore, ParamsId, RegisteredLimit, StateKey, Store,
    StoreCall, StoreError,
};
use params_registry::ParamsRegistry;
use reservations::Reservations;
use resets::Resets;
use shard::{Locations, LockedShard, Shard};
use stats::Events;
use std::convert::Infallible;
use table::address::CellHasher;
use table::budget::Budget;
use tollgate_core::{Intent, LimitParams, LimitState};

pub use options::MemoryOptions;
pub use stats::MemoryStats;

/// A store in this process, with a cap on its bytes.
#[derive(Debug)]
pub struct MemoryStore {
    addresses: CellHasher,
    shards: Box<[CachePadded<Lock<Shard>>]>,
    shared: ShardContext,
    reservations: Reservations,
    /// The shard that the next sweep starts with.
    next_sweep: AtomicUsize,
}

/// The parts that all shards share.
#[derive(Debug)]
pub(crate) struct ShardContext {
    registry: ParamsRegistry,
    budget: Budget,
    events: Events,
    locations: Locations,
    garbage: Garbage,
    resets: Resets,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(options: MemoryOptions) -> Self {
        let shards = options.shard_count();
        let fixed_bytes = shards * (size_of::<CachePadded<Lock<Shard>>>() + Locations::SHARD_BYTES);
        Self {
            addresses: CellHasher::new(shards, options.seed),
            shards: (0..shards).map(|number| CachePadded(Lock::new(Shard::new(number)))).collect(),
            shared: ShardContext {
                registry: ParamsRegistry::new(),
                budget: Budget::new(options.max_bytes, fixed_bytes as u64),
                events: Events::default(),
                locations: Locations::new(shards),
                garbage: Garbage::new(),
                resets: Resets::default(),
            },
            reservations: Reservations::default(),
            next_sweep: AtomicUsize::new(0),
        }
    }

    fn reset(&self, now_us: u64, limit: u64, key: &[u8]) {
        let address = self.addresses.address(limit, key);
        let mut shard = LockedShard(lock(&self.shards[address.shard].0));
        // The algorithm, and so the table, is not known here.
        let was_known = shard.forget::<1>(&self.shared, address.tag())
            | shard.forget::<2>(&self.shared, address.tag());
        self.shared.resets.record(address, now_us, was_known);
    }

    /// Sweeps the next `shards` shards: drops state that has been idle for ten seconds, or idle at
    /// all when the store is nearly full, and shrinks tables. A timer that sweeps a few shards at a
    /// time reclaims everything in turn; one shard is locked at a time.
    pub fn sweep(&self, now_us: u64, shards: usize) {
        self.reservations.sweep(now_us);
        self.shared.resets.sweep(now_us);
        for _ in 0..shards.min(self.shards.len()) {
            let at = self.next_sweep.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            lock(&self.shards[at].0).sweep(&self.shared, now_us);
        }
        self.shared.garbage.free_all();
    }

    /// The number of shards: [`sweep`](Self::sweep) of so many is a full turn.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The current figures. Locks every shard in turn.
    pub fn stats(&self) -> MemoryStats {
        let events = &self.shared.events;
        MemoryStats {
            keys: self.shards.iter().map(|shard| lock(&shard.0).len() as u64).sum(),
            bytes: self.shared.budget.used(),
            evicted: events.evicted.load(Ordering::Relaxed),
            overflowed: self.overflowed().iter().map(|&(_, count)| count).sum(),
            uncounted: events.uncounted.load(Ordering::Relaxed),
        }
    }

    /// Decisions that shared an overflow cell, by limit.
    pub fn overflowed(&self) -> Vec<(u64, u64)> {
        self.shared.events.overflowed_by_limit()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(MemoryOptions::default())
    }
}

impl Store for MemoryStore {
    type Undecided = Infallible;

    #[inline(always)]
    fn decide_one<T, F: FnOnce(Answer) -> T>(
        &self,
        clock: impl Clock,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
        otherwise: impl FnOnce(F) -> T,
    ) -> T {
        let address = self.addresses.address(charge.limit, charge.key);
        self.decide_lock_free(address, clock, charge, intent, conclude, otherwise)
    }

    #[inline(always)]
    fn decide_together<T>(
        &self,
        clock: impl Clock,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
        conclude: impl FnOnce(Answer) -> T,
    ) -> Option<T> {
        self.decide_known(clock, key, cost, limits, conclude)
    }

    // Inlined, so that a caller that only decides contains no code for the other calls.
    #[inline(always)]
    fn begin(&self, now_us: u64, call: StoreCall<'_>, answers: &mut Answers) -> Option<Infallible> {
        answers.clear();
        match call {
            StoreCall::Decide(requests) => self.decide_batch(now_us, requests, answers),
            StoreCall::Adjust(adjustments) => self.adjust_all(now_us, adjustments, answers),
            StoreCall::Reset { limit, key } => self.reset(now_us, limit, key),
        }
        None
    }

    async fn finish<'a>(
        &'a self,
        _: u64,
        _: StoreCall<'a>,
        rest: Infallible,
        _: &'a mut Answers,
    ) -> Result<(), StoreError> {
        match rest {}
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        reservations::state_key(charge)
    }

    fn answers_at_once(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn register_params(&self, params: &LimitParams) -> ParamsId {
        self.shared.registry.register(params)
    }

    fn register_grouped(&self, params: &LimitParams) -> ParamsId {
        self.shared.registry.register_grouped(params)
    }
}

impl LeaseStore for MemoryStore {
    async fn read_state<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LimitState>, StoreError> {
        let address = self.addresses.address(charge.limit, charge.key);
        let mut shard = LockedShard(lock(&self.shards[address.shard].0));
        let found = shard.find(charge.params, address.tag());
        Ok(Some(shard.read(&self.shared, found, charge)))
    }
}
