//! Tollgate's memory store, called as an engine calls it.

use crate::{Arrivals, Contender, Limit};
use std::slice;
use tollgate_core::algorithm::{FixedWindow, Gcra, SlidingWindow, TokenBucket};
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{
    Answers, Charge, MemoryStore, Mode, ParamsId, ProcessClock, Request, Store, StoreCall,
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
    params: [LimitParams; LIMITS],
    tickets: [ParamsId; LIMITS],
}

impl<const LIMITS: usize> Ours<LIMITS> {
    /// Enforces `limit` as often as there are limits. They differ in their count, as "a second, a minute, an hour" would.
    pub fn new(name: &'static str, limit: Limit, kind: Kind) -> Self {
        // The cap is a choice of the operator; this one holds the ten million keys of the memory row. Memory follows the keys.
        let store = MemoryStore::new(MemoryOptions::default().max_bytes(4 << 30));
        let params = std::array::from_fn(|n| params(limit, kind, n as u32));
        let tickets = std::array::from_fn(|n| store.register_params(&params[n]));
        Self { name, store, params, tickets }
    }

    #[inline]
    fn charges<'a>(&'a self, key: &'a str) -> [Charge<'a>; LIMITS] {
        std::array::from_fn(|n| Charge {
            limit: n as u64 + 1,
            key: key.as_bytes(),
            params: &self.params[n],
            params_id: self.tickets[n],
            cost: 1,
            mode: Mode::Enforce,
            penalty: None,
        })
    }
}

pub(crate) fn params(limit: Limit, kind: Kind, more: u32) -> LimitParams {
    let rate = |count| Rate::try_new(count, u64::from(limit.period_s) * 1_000_000);
    let paced =
        || rate(u64::from(limit.count << more)).map(|rate| (rate, Some(limit.burst.into())));
    // A window has no burst, so it admits as many in a period as the others do at once.
    let window = || rate(u64::from(limit.burst + more));
    let params = match kind {
        Kind::Gcra => paced().and_then(|(r, b)| Gcra::try_new(r, b)).map(LimitParams::Gcra),
        Kind::TokenBucket => {
            paced().and_then(|(r, b)| TokenBucket::try_new(r, b)).map(LimitParams::TokenBucket)
        }
        Kind::SlidingWindow => window().map(|r| LimitParams::SlidingWindow(SlidingWindow::new(r))),
        Kind::FixedWindow => window().map(|r| LimitParams::FixedWindow(FixedWindow::new(r))),
    };
    params.expect("the limit is in range")
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
            self.store.begin(
                ProcessClock.now_us(),
                StoreCall::Decide(slice::from_ref(&request)),
                &mut answers,
            );
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
            self.0.store.begin(ProcessClock.now_us(), StoreCall::Decide(&requests), &mut answers);
            (0..BATCH).filter(|&n| answers.get(n).is_some_and(|(admitted, _)| admitted)).count()
        })
    }
}
