//! governor, keyed by `String`, with its own choice of map, hasher and clock.

use crate::{Arrivals, Contender, Limit};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;

/// `RateLimiter::keyed`.
#[derive(Debug)]
pub struct Governor(DefaultKeyedRateLimiter<String>);

impl Governor {
    /// Enforces `limit`.
    pub fn new(limit: Limit) -> Self {
        let interval = Duration::from_secs(limit.period_s.into()) / limit.count;
        let quota = Quota::with_period(interval)
            .zip(NonZeroU32::new(limit.burst))
            .map(|(quota, burst)| quota.allow_burst(burst))
            .expect("the limit is not zero");
        Self(RateLimiter::keyed(quota))
    }
}

impl Contender for Governor {
    fn name(&self) -> &'static str {
        "governor"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        arrivals.admit(|key| self.0.check_key(key).is_ok())
    }
}
