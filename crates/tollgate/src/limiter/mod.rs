//! The limiter: quotas by key, permits, reservations, and waiting in line.

mod async_api;
mod builder;
mod decision;
mod detach;
mod figures;
#[cfg(feature = "tokio")]
mod pause;
mod reservation;
mod store_calls;
#[cfg(feature = "tokio")]
mod wait;
#[cfg(feature = "tokio")]
mod wait_queue;

use crate::{Key, Quota};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use store_calls::ResetCounters;
use tollgate_core::LimitParams;
use tollgate_store::{
    Change, Clock, CounterClock, FixedClock, MemoryStore, ParamsId, RegisteredLimit, StoreError,
    StoreReply,
};

pub use builder::{InvalidLimiter, LimiterBuilder};
pub use decision::{Decision, Permit, Refusal, Standing};
pub use reservation::Reservation;
pub(crate) use store_calls::micros;
#[cfg(feature = "tokio")]
pub use wait::WaitError;

/// Enforces quotas, with a count for every key.
///
/// ```
/// use tollgate::{Decision, Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(100));
///
/// match limiter.check("alice") {
///     Decision::Admitted(permit) => println!("go ahead, {} left", permit.remaining),
///     Decision::Refused(refusal) => println!("not now: {refusal}"),
/// }
/// ```
///
/// A limiter is a handle: clones share their state, and any number of threads may use them.
///
/// # Methods
///
/// | | |
/// | --- | --- |
/// | [`check`](Self::check) | takes one unit now, or refuses with the wait |
/// | [`reserve`](Self::reserve) | takes an estimate, settled or given back later; guards slots |
/// | [`wait`](Self::wait) | waits in line until admitted, but not past a deadline |
/// | [`peek`](Self::peek) | shows the state of a key, takes nothing |
/// | [`reset`](Self::reset) | drops the state of a key |
/// | [`block`](Self::block), [`unblock`](Self::unblock) | refuses a key despite its quota |
///
/// In memory they answer at once and cannot fail. On any other store use the methods that end in
/// `_async`, which return an error if the [store fails](crate::StoreError).
///
/// # Keys
///
/// Each key has a count of its own: a user, an address, a tenant and an endpoint. A [`Key`] is
/// text, bytes, a number, an IP address, or a tuple of these; `()` is one shared count. The store
/// keeps a keyed hash, not the key.
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(1));
/// let ip: IpAddr = [192, 0, 2, 7].into();
/// assert!(limiter.check((ip, "/login")).is_admitted());
/// assert!(!limiter.check((ip, "/login")).is_admitted());
/// assert!(limiter.check((ip, "/search")).is_admitted());
/// ```
///
/// # Several quotas
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::builder(Quota::per_second(5)).and(Quota::per_hour(1_000)).build()?;
/// assert!(limiter.check("alice").is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A request must pass all quotas. If one refuses, none is charged.
///
/// # Time in tests
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use tollgate::{Limiter, ManualClock, Quota};
///
/// let clock = Arc::new(ManualClock::default());
/// let quota = Quota::per_minute(1).with_burst(1)?;
/// let limiter = Limiter::builder(quota).clock(clock.clone()).build()?;
/// assert!(limiter.check("alice").is_admitted());
/// assert!(!limiter.check("alice").is_admitted());
/// clock.elapse(Duration::from_secs(60));
/// assert!(limiter.check("alice").is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Limiter<S = MemoryStore> {
    pub(crate) inner: Arc<Inner<S>>,
}

pub(crate) struct Inner<S> {
    pub(crate) store: Arc<S>,
    pub(crate) clock: LimiterClock,
    check_path: CheckPath,
    /// The first of `limits`, found without a pointer.
    first: RegisteredLimit,
    limits: Box<[RegisteredLimit]>,
    quotas: Box<[Quota]>,
    resets: ResetCounters,
    #[cfg(feature = "tokio")]
    pub(crate) wait_queues: wait_queue::WaitQueues,
}

/// The clock of the processor's counter, which needs no dynamic call, or another one.
pub(crate) enum LimiterClock {
    Counter(CounterClock),
    Other(Arc<dyn Clock>),
}

/// A clock that a store may read, since it neither blocks nor calls a store.
enum StoreClock {
    Counter(CounterClock),
    Read(FixedClock),
}

impl Clock for StoreClock {
    #[inline(always)]
    fn now_us(&self) -> u64 {
        match self {
            Self::Counter(clock) => clock.now_us(),
            Self::Read(clock) => clock.now_us(),
        }
    }
}

/// The code that checks the quotas, chosen once. Code for one algorithm stays in registers.
#[derive(Clone, Copy)]
enum CheckPath {
    /// One quota of this algorithm with state of one word, and the counter's clock.
    Gcra,
    SlidingWindow,
    /// One quota with state of one word.
    OneWord,
    /// Several quotas, or state beyond one word.
    Together,
}

impl CheckPath {
    fn of(limits: &[RegisteredLimit], clock: &LimiterClock) -> Self {
        let [limit] = limits else { return Self::Together };
        match (&limit.params, clock) {
            (
                LimitParams::TokenBucket(_)
                | LimitParams::SlidingLog(_)
                | LimitParams::Concurrency(_),
                _,
            ) => Self::Together,
            _ if limit.params_id == ParamsId::default() => Self::Together,
            (LimitParams::Gcra(_), LimiterClock::Counter(_)) => Self::Gcra,
            (LimitParams::SlidingWindow(_), LimiterClock::Counter(_)) => Self::SlidingWindow,
            _ => Self::OneWord,
        }
    }
}

impl Clock for LimiterClock {
    #[inline(always)]
    fn now_us(&self) -> u64 {
        match self {
            Self::Counter(clock) => clock.now_us(),
            Self::Other(clock) => clock.now_us(),
        }
    }
}

impl LimiterClock {
    /// A clock for the store to read. A clock of the user is read before: inside the store it might
    /// block, or call the store.
    #[inline(always)]
    fn for_store(&self) -> StoreClock {
        match self {
            Self::Counter(clock) => StoreClock::Counter(*clock),
            Self::Other(clock) => StoreClock::Read(FixedClock(clock.now_us())),
        }
    }
}

impl Limiter {
    /// A limiter in memory, with the process's clock: see [`Limiter`].
    pub fn new(quota: Quota) -> Self {
        LimiterBuilder::new(quota).assemble()
    }

    /// A builder, for several quotas, another store or clock, or a shorter line: see
    /// [`LimiterBuilder`].
    pub fn builder(quota: Quota) -> LimiterBuilder {
        LimiterBuilder::new(quota)
    }

    /// Takes one unit for `key`, if one is left.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(1));
    /// assert!(limiter.check("alice").is_admitted());
    /// assert!(!limiter.check("alice").is_admitted());
    /// assert!(limiter.check("bob").is_admitted());
    /// ```
    #[inline]
    pub fn check(&self, key: impl Key) -> Decision {
        self.check_n(key, 1)
    }

    /// Takes `cost` units for `key`, all or none. A cost of zero is admitted unless the key is
    /// blocked; one above the [capacity](Quota::capacity) never is, and the refusal says so: its
    /// `retry_after` is `None`.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100));
    /// assert!(limiter.check_n("alice", 100).is_admitted());
    /// let never = limiter.check_n("alice", 101);
    /// assert_eq!(never.refusal().and_then(|refusal| refusal.retry_after()), None);
    /// ```
    #[inline]
    pub fn check_n(&self, key: impl Key, cost: u64) -> Decision {
        self.inner.check_now(key.key_bytes().as_ref(), cost)
    }

    /// The state of `key`. Takes nothing.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100));
    /// limiter.check_n("alice", 30).admitted().ok_or("refused")?;
    /// let standing = limiter.peek("alice");
    /// assert_eq!((standing.remaining, standing.limit), (70, 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek(&self, key: impl Key) -> Standing {
        self.peek_n(key, 1)
    }

    /// The answer that [`check_n`](Self::check_n) would give. Takes nothing: see
    /// [`peek`](Self::peek).
    pub fn peek_n(&self, key: impl Key, cost: u64) -> Standing {
        infallible(self.inner.peek(key.key_bytes().as_ref(), cost))
    }

    /// Drops the count and any block of `key`.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(1));
    /// assert!(limiter.check("alice").is_admitted());
    /// limiter.reset("alice");
    /// assert!(limiter.check("alice").is_admitted());
    /// ```
    pub fn reset(&self, key: impl Key) {
        infallible(self.inner.reset(key.key_bytes().as_ref()));
    }

    /// Refuses `key` for `duration`, even at a cost of zero. A longer block stays.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100));
    /// limiter.block("mallory", Duration::from_secs(600));
    /// assert!(limiter.peek("mallory").blocked);
    /// limiter.unblock("mallory");
    /// assert!(limiter.check("mallory").is_admitted());
    /// ```
    pub fn block(&self, key: impl Key, duration: Duration) -> Standing {
        infallible(self.inner.block(key.key_bytes().as_ref(), duration))
    }

    /// Ends the block of `key`: see [`block`](Self::block). Its count stays.
    pub fn unblock(&self, key: impl Key) -> Standing {
        infallible(self.inner.adjust_all(key.key_bytes().as_ref(), Change::Unblock))
    }

    /// Takes `estimate` units for `key`, to be settled when the real cost is known, or given back.
    /// Slots are held as long as the [`Reservation`] lives, at most for the quota's `ttl`.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100));
    /// let reservation = limiter.reserve("alice", 10).admitted().ok_or("refused")?;
    /// assert_eq!(reservation.permit().remaining, 90);
    /// // The request failed through no fault of alice.
    /// assert_eq!(reservation.cancel().remaining, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, key: impl Key, estimate: u64) -> Decision<Reservation> {
        let decision = infallible(self.inner.reserve(key.key_bytes().as_ref(), estimate));
        decision.map(|record| Reservation::new(self, record))
    }
}

/// The answer of the memory store, which is always ready.
#[inline]
fn infallible<T>(reply: StoreReply<'_, Result<T, StoreError>, Infallible>) -> T {
    match reply.now() {
        Ok(answer) => answer,
        Err(_) => unreachable!("only the second phase of a call can fail"),
    }
}

impl<S> Limiter<S> {
    /// The quotas in force, in the order in which they were given: see [`LimiterBuilder`].
    pub fn quotas(&self) -> impl Iterator<Item = &Quota> {
        self.inner.quotas.iter()
    }

    /// The store that keeps the counts: see [`LimiterBuilder::store`].
    pub fn store(&self) -> &S {
        &self.inner.store
    }
}

impl<S> Inner<S> {
    /// Whether the end of a reservation frees slots.
    fn has_slots(&self) -> bool {
        self.limits.iter().any(|limit| matches!(limit.params, LimitParams::Concurrency(_)))
    }
}

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limiter").field(&self.quotas().collect::<Vec<_>>()).finish()
    }
}
