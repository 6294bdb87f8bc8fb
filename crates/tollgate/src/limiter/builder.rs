//! The builder of a limiter.

use super::store_calls::ResetCounters;
use super::{CheckPath, Inner, Limiter, LimiterClock};
use crate::Quota;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::Arc;
use tollgate_core::state_id;
use tollgate_store::{Clock, MemoryStore, ProcessClock, RegisteredLimit, Store};

/// The most quotas of a limiter, since every check decides all of them.
const QUOTAS_MAX: usize = 16;

/// Builds a [`Limiter`]. Start with [`Limiter::builder`].
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Limiter, ManualClock, MemoryStore, Quota};
///
/// let store = Arc::new(MemoryStore::default());
/// let limiter = Limiter::builder(Quota::per_second(5))
///     .and(Quota::per_hour(1_000)) // both or neither
///     .store(store) // shared with other limiters
///     .name("searches") // which count apart from it
///     .clock(ManualClock::default()) // for a test
///     .max_waiters(100)
///     .build()?;
/// assert_eq!(limiter.quotas().count(), 2);
/// # Ok::<(), tollgate::limiter::InvalidLimiter>(())
/// ```
#[must_use = "nothing is limited until `build`"]
pub struct LimiterBuilder<S = MemoryStore> {
    quotas: SmallVec<[Quota; 1]>,
    store: Arc<S>,
    /// `None`: the process's.
    clock: Option<Arc<dyn Clock>>,
    name: Box<str>,
    max_waiters: usize,
}

/// The reason why a limiter cannot be built: see [`LimiterBuilder::build`].
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let quota = Quota::per_minute(100);
/// let error = Limiter::builder(quota).and(quota).build().unwrap_err();
/// assert!(error.to_string().ends_with("is given twice; drop one"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidLimiter {
    /// The same quota is given twice.
    Twice(Box<Quota>),
    /// More than 16 quotas.
    TooManyQuotas,
    /// The line has no room.
    NoWaiters,
    /// The Redis store cannot be opened, for this reason.
    #[cfg(feature = "redis")]
    Redis(Box<str>),
}

impl LimiterBuilder {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quotas: smallvec![quota],
            store: Arc::default(),
            clock: None,
            name: Box::default(),
            max_waiters: 1_024,
        }
    }
}

impl<S: Store> LimiterBuilder<S> {
    /// Adds a quota. A request must pass all quotas and is charged on each; if one refuses, none is
    /// charged ([example](LimiterBuilder)).
    pub fn and(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Keeps the counts in `store` instead of a memory store of its own.
    ///
    /// Limiters that share a store need [names](Self::name). Limiters with the same name share the
    /// counts of quotas with the same algorithm and period.
    pub fn store<T: Store>(self, store: Arc<T>) -> LimiterBuilder<T> {
        let Self { quotas, clock, name, max_waiters, .. } = self;
        LimiterBuilder { quotas, store, clock, name, max_waiters }
    }

    /// Keeps the counts in Redis or Valkey, shared by all processes with the same settings.
    ///
    /// ```no_run
    /// use tollgate::{Decision, Limiter, Quota};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let logins = Limiter::builder(Quota::per_minute(5))
    ///     .redis("redis://127.0.0.1:6379")?
    ///     .name("logins")
    ///     .build()?;
    ///
    /// match logins.check_async("alice").await? {
    ///     Decision::Admitted(permit) => println!("{} tries left", permit.remaining),
    ///     Decision::Refused(refusal) => println!("too many tries: {refusal}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The URL is `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS,
    /// or `unix:///path`. Limiters with one [name](Self::name) share their counts, in this process
    /// and others, so give each a name of its own. For sentinels, a cluster, another deadline than
    /// 25 ms or a prefix, open a [`RedisStore`] and pass it to [`store`](Self::store). Many
    /// limiters can share its connections.
    ///
    /// Call this inside a tokio runtime with I/O and timers (`enable_all`). The connections live as
    /// long as that runtime; afterwards every call is an error.
    ///
    /// # Errors
    ///
    /// If the URL is invalid, or there is no tokio runtime. A server that is down is not an error
    /// here: calls fail until it is up.
    ///
    /// [`RedisStore`]: tollgate_store::RedisStore
    #[cfg(feature = "redis")]
    pub fn redis(
        self,
        url: &str,
    ) -> Result<LimiterBuilder<tollgate_store::RedisStore>, InvalidLimiter> {
        let store = tollgate_store::RedisStore::from_url(url);
        let store = store.map_err(|error| InvalidLimiter::Redis(error.detail))?;
        Ok(self.store(Arc::new(store)))
    }

    /// Sets the name of the counts in a shared store; `""` by default
    /// ([example](LimiterBuilder)).
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the clock: a [`ManualClock`](crate::ManualClock) in tests.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets how many may [wait](Limiter::wait) in line for one key; 1,024 by default. All lines
    /// together hold at most 64 times as many.
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.max_waiters = waiters;
        self
    }

    /// Builds the limiter ([example](LimiterBuilder)).
    ///
    /// # Errors
    ///
    /// If a quota is given twice, there are more than 16, or the line has no room.
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

    /// Builds without checks; a single quota is always valid.
    pub(super) fn assemble(self) -> Limiter<S> {
        let limits = self.quotas.iter().enumerate().map(|(at, quota)| {
            let params = quota.params();
            // The index is part of the id, since two quotas may differ only in their burst.
            let place = at.to_string().into_boxed_str();
            let id = state_id(&self.name, &[place], params.algorithm(), params.period_us());
            let params_id = match &self.quotas[..] {
                [_] => self.store.register_params(params),
                _ => self.store.register_grouped(params),
            };
            RegisteredLimit { id, params: *params, params_id }
        });
        let limits: Box<[RegisteredLimit]> = limits.collect();
        let clock = match (self.clock, ProcessClock.counter()) {
            (Some(clock), _) => LimiterClock::Other(clock),
            (None, Some(counter)) => LimiterClock::Counter(counter),
            (None, None) => LimiterClock::Other(Arc::new(ProcessClock)),
        };
        let inner = Inner {
            check_path: CheckPath::of(&limits, &clock),
            first: limits[0],
            limits,
            quotas: self.quotas.iter().copied().collect(),
            resets: ResetCounters::new(),
            clock,
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
            #[cfg(feature = "redis")]
            Self::Redis(why) => write!(f, "cannot use Redis: {why}"),
        }
    }
}

impl std::error::Error for InvalidLimiter {}
