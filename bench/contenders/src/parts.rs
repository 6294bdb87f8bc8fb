//! The separate costs of the parts of a decision.

use crate::{Arrivals, Contender};
use ahash::RandomState;
use quanta::Clock;
use std::hash::{BuildHasher, RandomState as SipState};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tollgate_store::ProcessClock;

/// One part of a decision.
pub struct Part {
    name: &'static str,
    run: Box<dyn Fn(Arrivals<'_>) -> usize + Sync>,
}

impl Part {
    fn new(name: &'static str, work: impl Fn(&String) -> u64 + Sync + 'static) -> Self {
        let run = move |arrivals: Arrivals<'_>| arrivals.admit(|key| black_box(work(key)) != 0);
        Self { name, run: Box::new(run) }
    }

    /// All parts.
    pub fn all() -> Vec<Box<dyn Contender>> {
        let (start, clock, mutex) = (Instant::now(), Clock::new(), Mutex::new(0_u64));
        let (fast, sip) = (RandomState::new(), SipState::new());
        let add = move |_: &String| {
            let mut count = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            *count += 1;
            *count
        };
        vec![
            Box::new(Self::new("the loop", |_| 1)),
            Box::new(Self::new("the counter (rdtsc)", move |_| clock.raw())),
            Box::new(Self::new("ours: ProcessClock", |_| ProcessClock.now_us())),
            Box::new(Self::new("Instant", move |_| start.elapsed().as_nanos() as u64)),
            Box::new(Self::new("a hash of folded products (aHash)", move |key| {
                fast.hash_one(key.as_bytes())
            })),
            Box::new(Self::new("a hash as governor's (SipHash)", move |key| sip.hash_one(key))),
            Box::new(Self::new("a lock taken and returned", add)),
        ]
    }
}

impl Contender for Part {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        (self.run)(arrivals)
    }
}
