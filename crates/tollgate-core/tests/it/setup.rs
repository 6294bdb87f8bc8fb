//! The limit of a test, as parameters of the crate and as plain numbers for the oracle.

use crate::oracle::Plan;
use tollgate_core::algorithm::{
    Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket,
};
use tollgate_core::{Algorithm, InvalidParams, LimitParams, Rate};

/// All algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    FixedWindow,
    SlidingWindow,
    SlidingLog,
    TokenBucket,
    Gcra,
    LeakyBucket,
    Concurrency,
}

pub const KINDS: [Kind; 7] = [
    Kind::FixedWindow,
    Kind::SlidingWindow,
    Kind::SlidingLog,
    Kind::TokenBucket,
    Kind::Gcra,
    Kind::LeakyBucket,
    Kind::Concurrency,
];

/// The parameters of a limit before validation; an algorithm ignores those that it lacks.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub kind: Kind,
    pub count: u64,
    pub period_us: u64,
    pub burst: u64,
    pub queue: u64,
}

impl Setup {
    pub fn params(&self) -> Result<LimitParams, InvalidParams> {
        let rate = Rate::try_new(self.count, self.period_us)?;
        let (burst, queue) = (Some(self.burst), Some(self.queue));
        Ok(match self.kind {
            Kind::FixedWindow => LimitParams::FixedWindow(FixedWindow::new(rate)),
            Kind::SlidingWindow => LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            Kind::SlidingLog => LimitParams::SlidingLog(SlidingLog::new(rate)),
            Kind::TokenBucket => LimitParams::TokenBucket(TokenBucket::try_new(rate, burst)?),
            Kind::Gcra => LimitParams::Gcra(Gcra::try_new(rate, burst)?),
            Kind::LeakyBucket => {
                LimitParams::LeakyBucket(LeakyBucket::try_new(rate, burst, queue)?)
            }
            Kind::Concurrency => {
                LimitParams::Concurrency(Concurrency::try_new(self.count, self.period_us)?)
            }
        })
    }

    pub fn plan(&self) -> Plan {
        Plan {
            count: self.count.into(),
            period_us: self.period_us.into(),
            burst: self.burst.into(),
            queue: self.queue.into(),
        }
    }

    /// Whether the algorithm has windows or a log, and not a bucket or slots.
    pub fn has_windows(&self) -> bool {
        matches!(self.kind, Kind::FixedWindow | Kind::SlidingWindow | Kind::SlidingLog)
    }

    /// The reach of an admission: the drain time of a full bucket, or a time to live.
    pub fn horizon_us(&self) -> u64 {
        match self.params().expect("only valid setups are drawn").window_us() {
            Some(window_us) => window_us,
            None => self.period_us,
        }
    }

    /// Whether the state is a single timestamp, which forgets the latest instant of the clock.
    pub fn is_one_timestamp(&self) -> bool {
        matches!(self.kind, Kind::Gcra | Kind::LeakyBucket)
    }
}
