//! Tollgate's memory store, called as an engine calls it.

use crate::{Arrivals, Contender, Limit};
use std::slice;
use tollgate_core::algorithm::{FixedWindow, Gcra, SlidingWindow, TokenBucket};
use tollgate_core::{Intent, Numbers, Rate};
use tollgate_store::memory::Options;
use tollgate_store::{
    Answers, Call, Charge, MemoryStore, Mode, ProcessClock, Request, Store, Ticket,
};

/// Requests in a batch.
const BATCH: usize = 64;

/// Which algorithm decides.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is named as its type")]
pub enum Kind {
    Gcra,
    TokenBucket,
    SlidingWindow,
    FixedWindow,
}

/// So many limits on every key, one request at a time.
#[derive(Debug)]
pub struct Ours<const LIMITS: usize = 1> {
    name: &'static str,
    store: MemoryStore,
    numbers: [Numbers; LIMITS],
    tickets: [Ticket; LIMITS],
}

impl<const LIMITS: usize> Ours<LIMITS> {
    /// Enforces `limit` as often as there are limits. They differ in their count, as "a second, a minute, an hour" would.
    pub fn new(name: &'static str, limit: Limit, kind: Kind) -> Self {
        // The cap is a choice of the operator; this one holds the ten million keys of the memory row. Memory follows the keys.
        let store = MemoryStore::new(Options::default().max_bytes(4 << 30));
        let numbers = std::array::from_fn(|n| numbers(limit, kind, n as u32));
        let tickets = std::array::from_fn(|n| store.enroll(&numbers[n]));
        Self { name, store, numbers, tickets }
    }

    #[inline]
    fn charges<'a>(&'a self, key: &'a str) -> [Charge<'a>; LIMITS] {
        std::array::from_fn(|n| Charge {
            limit: n as u64 + 1,
            key: key.as_bytes(),
            numbers: &self.numbers[n],
            ticket: self.tickets[n],
            cost: 1,
            mode: Mode::Enforce,
            penalty: None,
        })
    }
}

pub(crate) fn numbers(limit: Limit, kind: Kind, more: u32) -> Numbers {
    let rate = |count| Rate::try_new(count, u64::from(limit.period_s) * 1_000_000);
    let paced =
        || rate(u64::from(limit.count << more)).map(|rate| (rate, Some(limit.burst.into())));
    // A window has no burst, so it admits as many in a period as the others do at once.
    let window = || rate(u64::from(limit.burst + more));
    let numbers = match kind {
        Kind::Gcra => paced().and_then(|(r, b)| Gcra::try_new(r, b)).map(Numbers::Gcra),
        Kind::TokenBucket => {
            paced().and_then(|(r, b)| TokenBucket::try_new(r, b)).map(Numbers::TokenBucket)
        }
        Kind::SlidingWindow => window().map(|r| Numbers::SlidingWindow(SlidingWindow::new(r))),
        Kind::FixedWindow => window().map(|r| Numbers::FixedWindow(FixedWindow::new(r))),
    };
    numbers.expect("the limit is in range")
}

impl<const LIMITS: usize> Contender for Ours<LIMITS> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        let mut answers = Answers::default();
        arrivals.admit(|key| {
            let charges = self.charges(key);
            let request = Request { charges: &charges, intent: Intent::Take };
            self.store.begin(ProcessClock.now_us(), Call::Decide(slice::from_ref(&request)), &mut answers);
            answers.get(0).is_some_and(|(admitted, _)| admitted)
        })
    }
}

/// One limit on every key, 64 requests at a time.
#[derive(Debug)]
pub struct Batch(pub Ours);

impl Contender for Batch {
    fn name(&self) -> &'static str {
        "ours, batch of 64"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        let mut answers = Answers::default();
        arrivals.admit_batches(|keys: &[&String; BATCH]| {
            let charges: [[Charge<'_>; 1]; BATCH] = keys.map(|key| self.0.charges(key));
            let requests: [Request<'_>; BATCH] =
                std::array::from_fn(|n| Request { charges: &charges[n], intent: Intent::Take });
            self.0.store.begin(ProcessClock.now_us(), Call::Decide(&requests), &mut answers);
            (0..BATCH).filter(|&n| answers.get(n).is_some_and(|(admitted, _)| admitted)).count()
        })
    }
}
