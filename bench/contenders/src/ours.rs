//! Tollgate's library, and its memory store in batches.

use crate::{Arrivals, Contender, Limit};
use std::sync::Arc;
use std::time::Duration;
use tollgate::quota::Algorithm;
use tollgate::{Limiter, Quota};
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{
    Answers, Charge, ChargeMode, MemoryStore, ParamsId, ProcessClock, Request, Store, StoreCall,
};

/// Requests per batch.
const BATCH: usize = 64;

/// `Limiter::check`, over one quota or several.
#[derive(Debug)]
pub struct Library {
    name: &'static str,
    limiter: Limiter,
}

impl Library {
    /// Creates a limiter with `Limiter::new`.
    pub fn new(name: &'static str, quota: Quota) -> Self {
        Self { name, limiter: Limiter::new(quota) }
    }

    /// Creates a limiter with room for the ten million keys of the memory row.
    pub fn large(name: &'static str, quota: Quota) -> Self {
        let store = Arc::new(MemoryStore::new(MemoryOptions::default().max_bytes(4 << 30)));
        let limiter = Limiter::builder(quota).store(store).build();
        Self { name, limiter: limiter.expect("one quota is valid") }
    }

    /// Three quotas of `limit` with different counts, like limits per second, minute and hour.
    pub fn three(name: &'static str, limit: Limit) -> Self {
        let more = |times| gcra(Limit { count: limit.count * times, ..limit });
        let builder = Limiter::builder(more(1)).and(more(2)).and(more(4));
        Self { name, limiter: builder.build().expect("the quotas differ") }
    }
}

impl Contender for Library {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        arrivals.admit(|key| self.limiter.check(key).is_admitted())
    }
}

/// `limit` with GCRA.
pub fn gcra(limit: Limit) -> Quota {
    paced(limit, Algorithm::Gcra)
}

/// `limit` as an algorithm with a burst.
pub fn paced(limit: Limit, algorithm: Algorithm) -> Quota {
    let period = Duration::from_secs(limit.period_s.into());
    let quota = Quota::of(limit.count).every(period);
    let quota = quota.and_then(|quota| quota.with_algorithm(algorithm));
    quota.and_then(|quota| quota.with_burst(limit.burst)).expect("the limit is in range")
}

/// `count` per `period_s` seconds with the default algorithm, a sliding window.
pub fn default_quota(count: u32, period_s: u64) -> Quota {
    Quota::of(count).every(Duration::from_secs(period_s)).expect("the limit is in range")
}

pub(crate) fn gcra_params(limit: Limit) -> LimitParams {
    let rate = Rate::try_new(limit.count.into(), u64::from(limit.period_s) * 1_000_000);
    let params = rate.and_then(|rate| Gcra::try_new(rate, Some(limit.burst.into())));
    LimitParams::Gcra(params.expect("the limit is in range"))
}

/// An inner layer: `Store::begin` of the memory store with 64 requests of one charge each.
#[derive(Debug)]
pub struct Batch {
    store: MemoryStore,
    params: LimitParams,
    params_id: ParamsId,
}

impl Batch {
    /// Enforces `limit`.
    pub fn new(limit: Limit) -> Self {
        let (store, params) = (MemoryStore::default(), gcra_params(limit));
        let params_id = store.register_params(&params);
        Self { store, params, params_id }
    }
}

impl Contender for Batch {
    fn name(&self) -> &'static str {
        "store, batch of 64"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        let mut answers = Answers::default();
        arrivals.admit_batches(|keys: &[&String; BATCH]| {
            let charges: [[Charge<'_>; 1]; BATCH] = keys.map(|key| {
                [Charge {
                    limit: 1,
                    key: key.as_bytes(),
                    params: &self.params,
                    params_id: self.params_id,
                    cost: 1,
                    mode: ChargeMode::Enforce,
                    penalty: None,
                }]
            });
            let requests: [Request<'_>; BATCH] =
                std::array::from_fn(|n| Request { charges: &charges[n], intent: Intent::Take });
            self.store.begin(ProcessClock.now_us(), StoreCall::Decide(&requests), &mut answers);
            (0..BATCH).filter(|&n| answers.get(n).is_some_and(|(admitted, _)| admitted)).count()
        })
    }
}
