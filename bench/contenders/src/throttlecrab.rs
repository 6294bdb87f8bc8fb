//! throttlecrab's library with its default store.

use crate::{Arrivals, Contender, Limit};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use throttlecrab::{PeriodicStore, RateLimiter};

/// `RateLimiter<PeriodicStore>`. It needs `&mut self`, so two threads need a lock. One thread takes
/// the lock once, not per decision.
pub struct Throttlecrab {
    limiter: Mutex<RateLimiter<PeriodicStore>>,
    limit: Limit,
}

impl Throttlecrab {
    /// Enforces `limit`.
    pub fn new(limit: Limit) -> Self {
        Self { limiter: Mutex::new(RateLimiter::new(PeriodicStore::new())), limit }
    }
}

impl Contender for Throttlecrab {
    fn name(&self) -> &'static str {
        "throttlecrab"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        let Limit { count, period_s, burst } = self.limit;
        let (burst, count, period_s) = (burst.into(), count.into(), period_s.into());
        let admits = |limiter: &mut RateLimiter<PeriodicStore>, key: &str| {
            let now = SystemTime::now();
            let decided = limiter.rate_limit(key, burst, count, period_s, 1, now);
            decided.is_ok_and(|(admitted, _)| admitted)
        };
        let lock = || self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        if arrivals.shared {
            return arrivals.admit(|key| admits(&mut lock(), key));
        }
        let mut limiter = lock();
        arrivals.admit(|key| admits(&mut limiter, key))
    }
}
