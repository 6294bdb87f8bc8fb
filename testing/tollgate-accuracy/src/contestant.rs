//! The algorithms under test, each with parameters for the same limit.

use std::time::Duration;
use tollgate::Quota;
use tollgate::quota::Algorithm;
use tollgate_core::algorithm::{
    FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket,
};
use tollgate_core::{LimitParams, Rate};

/// The limit: a number of requests in any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) count: u64,
    pub(crate) window_us: u64,
}

/// One algorithm with its parameters.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// Burst and rate, if they differ from the limit's.
    pub(crate) numbers: String,
    pub(crate) params: LimitParams,
    /// The most requests in any window, by [`Quota::bound`].
    pub(crate) bound: u64,
    /// Whether `limit - remaining` estimates the real rate.
    pub(crate) estimates: bool,
}

impl Contestant {
    /// All algorithms under test. Concurrency is left out, since it has no rate.
    pub(crate) fn all(limit: Limit) -> Vec<Self> {
        let count = limit.count;
        let fifth = count / 5;
        let plain = String::new;
        let reduced = format!("rate {}, burst {fifth}", count - fifth);
        vec![
            Self::new(limit, Algorithm::SlidingWindow, count, None, plain()),
            Self::new(limit, Algorithm::FixedWindow, count, None, plain()),
            Self::new(limit, Algorithm::SlidingLog, count, None, plain()),
            Self::new(limit, Algorithm::TokenBucket, count, Some(count), plain()),
            Self::new(limit, Algorithm::Gcra, count, Some(count), plain()),
            Self::new(limit, Algorithm::Gcra, count, Some(fifth), format!("burst {fifth}")),
            Self::new(limit, Algorithm::Gcra, count - fifth, Some(fifth), reduced),
            Self::new(limit, Algorithm::LeakyBucket, count, Some(1), "burst 1".into()),
        ]
    }

    fn new(
        limit: Limit,
        algorithm: Algorithm,
        count: u64,
        burst: Option<u64>,
        numbers: String,
    ) -> Self {
        let rate = Rate::try_new(count, limit.window_us).expect("a limit in range");
        let params = match algorithm {
            Algorithm::FixedWindow => LimitParams::FixedWindow(FixedWindow::new(rate)),
            Algorithm::SlidingLog => LimitParams::SlidingLog(SlidingLog::new(rate)),
            Algorithm::TokenBucket => {
                LimitParams::TokenBucket(TokenBucket::try_new(rate, burst).expect("in range"))
            }
            Algorithm::Gcra => LimitParams::Gcra(Gcra::try_new(rate, burst).expect("in range")),
            Algorithm::LeakyBucket => {
                LimitParams::LeakyBucket(LeakyBucket::try_new(rate, burst, None).expect("in range"))
            }
            _ => LimitParams::SlidingWindow(SlidingWindow::new(rate)),
        };
        let window = Duration::from_micros(limit.window_us);
        let mut quota = Quota::of(count as u32).every(window).expect("in range");
        quota = quota.with_algorithm(algorithm).expect("a rate");
        if let Some(burst) = burst {
            quota = quota.with_burst(burst as u32).expect("a burst");
        }
        let bound = quota.bound(window).expect("a rate has a bound");
        let estimates = burst.is_none_or(|burst| burst == limit.count);
        Self { name: algorithm.name(), numbers, params, bound, estimates }
    }
}
