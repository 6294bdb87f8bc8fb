//! What a limiter is made of.

use super::store_calls::ResetCounters;
use super::{Inner, Limiter, RegisteredQuota};
use crate::Quota;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_policy::state_id;
use tollgate_store::{Clock, MemoryStore, ProcessClock, Store};

/// More than this for one key is a mistake, and each is asked on every check.
const QUOTAS_MAX: usize = 16;

/// What a [`Limiter`] is made of. Begin with [`Limiter::builder`].
#[must_use = "nothing is limited until `build`"]
pub struct LimiterBuilder<S = MemoryStore> {
    quotas: SmallVec<[Quota; 1]>,
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    name: Box<str>,
    max_waiters: usize,
}

/// Why these parts make no limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidLimiter {
    /// The same quota twice would charge everybody double.
    Twice(Box<Quota>),
    /// More than 16 quotas.
    TooManyQuotas,
    /// A line that nobody may join.
    NoWaiters,
}

impl LimiterBuilder {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quotas: smallvec![quota],
            store: Arc::default(),
            clock: Arc::new(ProcessClock),
            name: Box::default(),
            max_waiters: 1_024,
        }
    }
}

impl<S: Store> LimiterBuilder<S> {
    /// Limits by this quota too. A key must pass all of them, and what one refuses is charged on
    /// none. A cost counts on each of them.
    pub fn and(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Keeps the counts in `store` instead of one of its own in memory.
    ///
    /// Limiters that share a store need [names](Self::name); two with one name and quotas of one
    /// algorithm and period share their counts, in this process or wherever the store reaches.
    pub fn store<T: Store>(self, store: Arc<T>) -> LimiterBuilder<T> {
        let Self { quotas, clock, name, max_waiters, .. } = self;
        LimiterBuilder { quotas, store, clock, name, max_waiters }
    }

    /// Whose counts these are in a store that others use too. Unnamed limiters are all called `""`.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Tells time by `clock` instead of the process's own: a [`ManualClock`](crate::ManualClock) in
    /// tests.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How many may [wait](Limiter::wait) in line for one key; 1,024 unless told otherwise. All
    /// lines together hold at most 64 times as many.
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.max_waiters = waiters;
        self
    }

    /// Puts the quotas in force.
    ///
    /// # Errors
    ///
    /// When a quota is given twice, when there are more than 16, or for a line of no waiters.
    pub fn build(self) -> Result<Limiter<S>, InvalidLimiter> {
        if self.max_waiters == 0 {
            return Err(InvalidLimiter::NoWaiters);
        }
        if self.quotas.len() > QUOTAS_MAX {
            return Err(InvalidLimiter::TooManyQuotas);
        }
        let earlier = |at: usize| &self.quotas[..at];
        let twice = |(at, quota): &(usize, &Quota)| earlier(*at).contains(quota);
        match self.quotas.iter().enumerate().find(twice) {
            Some((_, quota)) => Err(InvalidLimiter::Twice(Box::new(*quota))),
            None => Ok(self.assemble()),
        }
    }

    /// Without asking whether the parts fit; a single quota always does.
    pub(super) fn assemble(self) -> Limiter<S> {
        static LIMITERS: AtomicU64 = AtomicU64::new(0);
        let limits = self.quotas.iter().enumerate().map(|(at, quota)| {
            let params = quota.params();
            // The place among the quotas is part of the name, since two of one kind may differ in
            // their burst alone.
            let place = at.to_string().into_boxed_str();
            let id = state_id(&self.name, &[place], params.algorithm(), params.period_us());
            RegisteredQuota { quota: *quota, id, params_id: self.store.register_params(params) }
        });
        let inner = Inner {
            limits: limits.collect(),
            id: LIMITERS.fetch_add(1, Ordering::Relaxed),
            resets: ResetCounters::new(),
            clock: self.clock,
            #[cfg(feature = "tokio")]
            wait_queues: super::wait_queue::WaitQueues::new(self.max_waiters),
            store: self.store,
        };
        Limiter { inner: Arc::new(inner) }
    }
}

impl<S> fmt::Debug for LimiterBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LimiterBuilder");
        shown.field("quotas", &self.quotas).field("name", &self.name);
        shown.field("max_waiters", &self.max_waiters).finish_non_exhaustive()
    }
}

impl fmt::Display for InvalidLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(quota) => write!(f, "the quota of {quota} is given twice; drop one"),
            Self::TooManyQuotas => write!(f, "a limiter has at most {QUOTAS_MAX} quotas"),
            Self::NoWaiters => {
                f.write_str("a line needs room for at least one; to refuse at once, use check")
            }
        }
    }
}

impl std::error::Error for InvalidLimiter {}
