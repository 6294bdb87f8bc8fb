//! The memory store: bounded, sharded, without an allocation for a key it knows.
//!
//! A limit and a key are 64 bits of hash and nothing else. Twelve bits, of the key alone, choose one of the shards, each behind its own
//! lock; the others, with a ticket for the numbers the state was written under, are the tag of a cell of 16 or 24 bytes that holds
//! the state itself. What does not fit lives in the shard's slab.
//!
//! Several charges of one request lock their shards in ascending order, decide all and then write all. Those on one key need one lock.

mod address;
mod adjust;
mod batch;
mod book;
mod budget;
mod decide;
mod evict;
mod fast;
mod locks;
mod one_key;
mod options;
mod pack;
mod registry;
mod room;
mod shard;
mod slab;
mod spilled;
mod stats;
mod sweep;
mod table;
#[cfg(all(test, loom))]
mod tests;
mod together;
mod views;

use self::address::Addresses;
use self::book::Book;
use self::budget::Budget;
use self::registry::Registry;
use self::shard::Shard;
use self::stats::Events;
use self::views::Views;
use crate::sync::{AtomicUsize, Lock, Ordering, lock};
use crate::{Answers, Call, Charge, LeaseStore, Place, Store, StoreError, Ticket};
use std::convert::Infallible;
use tollgate_core::Numbers;

pub use self::options::Options;
pub use self::stats::Stats;

/// State in this process, within a cap on its bytes.
#[derive(Debug)]
pub struct MemoryStore {
    addresses: Addresses,
    shards: Box<[Padded]>,
    shared: Shared,
    book: Book,
    /// The shard that the next sweep starts with.
    next_sweep: AtomicUsize,
}

/// What all shards use.
#[derive(Debug)]
pub(crate) struct Shared {
    registry: Registry,
    budget: Budget,
    events: Events,
    views: Views,
}

/// Two shards never share a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Padded(Lock<Shard>);

impl MemoryStore {
    /// A store with the given options.
    pub fn new(options: Options) -> Self {
        let shards = options.shard_count();
        let fixed_bytes = shards * (size_of::<Padded>() + Views::SHARD_BYTES);
        Self {
            addresses: Addresses::new(shards, options.seed),
            shards: (0..shards).map(|number| Padded(Lock::new(Shard::new(number)))).collect(),
            shared: Shared {
                registry: Registry::new(),
                budget: Budget::new(options.max_bytes, fixed_bytes as u64),
                events: Events::default(),
                views: Views::new(shards),
            },
            book: Book::default(),
            next_sweep: AtomicUsize::new(0),
        }
    }

    fn reset(&self, limit: u64, key: &[u8]) {
        self.book.void(limit, key);
        let address = self.addresses.of(limit, key);
        let mut shard = lock(&self.shards[address.shard].0);
        // Which table it is in depends on an algorithm that is not known here.
        shard.forget::<1>(&self.shared, address.tag);
        shard.forget::<2>(&self.shared, address.tag);
    }

    /// Forgets what has been idle for ten seconds, or is idle at all when the store is nearly full, in the next `shards` shards and returns memory that they no longer need. A timer that calls this with a few shards at a
    /// time reclaims everything in turn, and holds one shard's lock at a time.
    pub fn sweep(&self, now_us: u64, shards: usize) {
        self.book.sweep(now_us);
        for _ in 0..shards.min(self.shards.len()) {
            let at = self.next_sweep.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            lock(&self.shards[at].0).sweep(&self.shared, now_us);
        }
    }

    /// How many shards there are: as many steps of [`sweep`](Self::sweep) make a full turn.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The figures of now. Looks at every shard in turn.
    pub fn stats(&self) -> Stats {
        let events = &self.shared.events;
        Stats {
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
        Self::new(Options::default())
    }
}

impl Store for MemoryStore {
    type Rest = Infallible;

    // Always, so that a caller who decides has no code for the other calls.
    #[inline(always)]
    fn begin(&self, now_us: u64, call: Call<'_>, answers: &mut Answers) -> Option<Infallible> {
        answers.clear();
        match call {
            Call::Decide(requests) => self.decide_batch(now_us, requests, answers),
            Call::Adjust(adjustments) => self.adjust_all(now_us, adjustments, answers),
            Call::Reset { limit, key } => self.reset(limit, key),
        }
        None
    }

    async fn finish<'a>(
        &'a self,
        _: u64,
        _: Call<'a>,
        rest: Infallible,
        _: &'a mut Answers,
    ) -> Result<(), StoreError> {
        match rest {}
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        book::place(charge)
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        self.shared.registry.enroll(numbers)
    }
}

impl LeaseStore for MemoryStore {}
