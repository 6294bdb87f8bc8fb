//! Clocks: the process's, the tokio runtime's, and one that tests move.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "tokio")]
pub use crate::raw::clock::TokioClock;
pub use crate::raw::clock::{CounterClock, ProcessClock};

/// Microseconds since the Unix epoch, never backwards.
pub trait Clock: Send + Sync {
    /// The current instant, below 2^53. Later instants count as the last one, at which buckets do
    /// not limit: a clock in nanoseconds is beyond it.
    fn now_us(&self) -> u64;
}

/// A clock that moves only on request, for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock that shows `now_us`.
    pub const fn new(now_us: u64) -> Self {
        Self(AtomicU64::new(now_us))
    }

    /// Moves to `now_us`; ignores an instant in the past.
    pub fn set(&self, now_us: u64) {
        self.0.fetch_max(now_us, Ordering::AcqRel);
    }

    /// Advances by `by_us`.
    pub fn advance(&self, by_us: u64) {
        let advance = |now_us: u64| Some(now_us.saturating_add(by_us));
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, advance);
    }

    /// Advances by `duration`, rounded down to whole microseconds.
    pub fn elapse(&self, duration: Duration) {
        self.advance(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// A clock that always shows the same time, which was read before.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub u64);

impl Clock for FixedClock {
    #[inline(always)]
    fn now_us(&self) -> u64 {
        self.0
    }
}

impl Clock for CounterClock {
    #[inline(always)]
    fn now_us(&self) -> u64 {
        Self::now_us(*self)
    }
}

impl Clock for ProcessClock {
    fn now_us(&self) -> u64 {
        Self::now_us(*self)
    }
}

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    fn now_us(&self) -> u64 {
        Self::now_us(self)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now_us(&self) -> u64 {
        (**self).now_us()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now_us(&self) -> u64 {
        (**self).now_us()
    }
}
