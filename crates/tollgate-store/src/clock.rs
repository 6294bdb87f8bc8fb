//! Where `now_us` comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use crate::raw::clock::ProcessClock;

/// Microseconds since the Unix epoch, never backwards.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now_us(&self) -> u64;
}

/// A clock that stands still until told otherwise: for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that stands at `now_us`.
    pub const fn new(now_us: u64) -> Self {
        Self(AtomicU64::new(now_us))
    }

    /// Moves to `now_us`, unless that lies in the past.
    pub fn set(&self, now_us: u64) {
        self.0.fetch_max(now_us, Ordering::AcqRel);
    }

    /// Moves on by `by_us`.
    pub fn advance(&self, by_us: u64) {
        self.0.fetch_add(by_us, Ordering::AcqRel);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Clock for ProcessClock {
    fn now_us(&self) -> u64 {
        Self::now_us(*self)
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
