//! One node's part of a limit, for when it has to decide alone.

use crate::algorithm::{
    Bucket, Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket,
};
use crate::{Algorithm, InvalidParams, LimitParams, Rate};

impl LimitParams {
    /// What each of `nodes` may admit so that together they stay within these numbers: every count
    /// divided and rounded down. A share of nothing refuses everything.
    pub fn share(&self, nodes: u32) -> Self {
        let nodes = u64::from(nodes.max(1));
        let nothing = Self::FixedWindow(FixedWindow::new(Rate::NOTHING));
        self.divided(nodes).unwrap_or(nothing)
    }

    fn divided(&self, nodes: u64) -> Result<Self, InvalidParams> {
        let capacity = self.capacity() / nodes;
        let window = || Rate::try_new(capacity, self.period_us());
        let rate = |one: &Bucket| Rate::try_new(u64::from(one.count()) / nodes, self.period_us());
        Ok(match self {
            Self::FixedWindow(_) => Self::FixedWindow(FixedWindow::new(window()?)),
            Self::SlidingLog(_) => Self::SlidingLog(SlidingLog::new(window()?)),
            Self::SlidingWindow(_) => Self::SlidingWindow(SlidingWindow::new(window()?)),
            Self::TokenBucket(one) => {
                Self::TokenBucket(TokenBucket::try_new(rate(one.bucket())?, Some(capacity))?)
            }
            Self::Gcra(one) => Self::Gcra(Gcra::try_new(rate(one.bucket())?, Some(capacity))?),
            Self::LeakyBucket(one) => {
                let ahead = one.bucket().burst();
                let (burst, queue) = (ahead / nodes, (one.capacity() - ahead) / nodes);
                let rate = rate(one.bucket())?;
                Self::LeakyBucket(LeakyBucket::try_new(rate, Some(burst), Some(queue))?)
            }
            Self::CalendarWindow(window) => {
                let limit = u32::try_from(capacity).map_err(|_| InvalidParams::CountTooLarge)?;
                Self::CalendarWindow(window.with_limit(limit))
            }
            Self::Concurrency(slots) => {
                Self::Concurrency(Concurrency::try_new(capacity, slots.ttl_us())?)
            }
        })
    }
}

#[cfg(test)]
mod tests;
