//! The limiter: quotas by key, permits, reservations, and waiting in line.

mod async_api;
mod builder;
mod decision;
mod detach;
mod reservation;
mod store_calls;
#[cfg(feature = "tokio")]
mod wait;
#[cfg(feature = "tokio")]
mod wait_queue;

use crate::Quota;
use smallvec::SmallVec;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use store_calls::{PermitEnd, ResetCounters};
use tollgate_core::LimitParams;
use tollgate_store::{Change, Clock, MemoryStore, ParamsId, StoreError, StoreReply};

pub use builder::{InvalidLimiter, LimiterBuilder};
pub use decision::{Decision, Permit, Refusal, Standing};
pub use reservation::Reservation;
pub(crate) use store_calls::micros;
#[cfg(feature = "tokio")]
pub use wait::WaitError;

/// Quotas in force, with a count for every key.
///
/// ```
/// use tollgate::{Decision, Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(100)?);
///
/// match limiter.check("alice") {
///     Decision::Admitted(permit) => println!("go ahead, {} left", permit.remaining),
///     Decision::Refused(refusal) => println!("not now: {refusal}"),
/// }
/// # Ok::<(), tollgate::quota::InvalidQuota>(())
/// ```
///
/// A limiter is a handle: clones share one state, and any number of threads may use them.
///
/// # Verbs
///
/// | | |
/// | --- | --- |
/// | [`check`](Self::check) | one unit now, or a refusal that says for how long |
/// | [`reserve`](Self::reserve) | an estimate now, its true cost later; a guard for slots |
/// | [`wait`](Self::wait) | in line until admitted, but not past a deadline |
/// | [`peek`](Self::peek) | where a key stands, with nothing taken |
/// | [`refund`](Self::refund) | what a check took |
/// | [`reset`](Self::reset) | a key starts anew |
/// | [`block`](Self::block), [`unblock`](Self::unblock) | refuses a key despite its quota |
///
/// In memory they answer at once, and cannot fail. On any other store use their twins that end in
/// `_async`, which may also answer that the store [could not decide](crate::StoreError).
///
/// # Keys
///
/// A key is whatever is counted apart: a user, an address, a tenant and an endpoint. It is bytes,
/// or anything that lends them: `"alice"`, a `String`, `user_id.to_be_bytes()`, `ip.octets()`; `""`
/// where all share one count. The store keeps a keyed hash, not the key. To count by two things,
/// join them in such a way that different pairs give different bytes: with a separator that cannot
/// occur in the first, or with its length in front.
///
/// # Several quotas
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let limiter = Limiter::builder(Quota::per_second(5)?).and(Quota::per_hour(1_000)?).build()?;
/// assert!(limiter.check("alice").is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Whoever passes has passed all of them, and what one refuses is charged on none.
///
/// # Time in your own tests
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use tollgate::{Limiter, ManualClock, Quota};
///
/// let clock = Arc::new(ManualClock::default());
/// let quota = Quota::per_minute(1)?.with_burst(1)?;
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
    pub(crate) clock: Arc<dyn Clock>,
    limits: SmallVec<[RegisteredQuota; 1]>,
    /// Different for each limiter of the process, so that a permit knows where it belongs.
    id: u64,
    /// How often keys were reset.
    resets: ResetCounters,
    #[cfg(feature = "tokio")]
    pub(crate) wait_queues: wait_queue::WaitQueues,
}

#[derive(Debug)]
struct RegisteredQuota {
    quota: Quota,
    /// Whose state it is.
    id: u64,
    /// The store's short name for the quota's numbers.
    params_id: ParamsId,
}

impl Limiter {
    /// A limiter in memory by the process's own clock.
    pub fn new(quota: Quota) -> Self {
        LimiterBuilder::new(quota).assemble()
    }

    /// For several quotas, another store or clock, or a shorter line.
    pub fn builder(quota: Quota) -> LimiterBuilder {
        LimiterBuilder::new(quota)
    }

    /// Takes one unit for `key`, if it is there.
    pub fn check(&self, key: impl AsRef<[u8]>) -> Decision {
        self.check_n(key, 1)
    }

    /// Takes `cost` units for `key`, all or none. A cost of zero is admitted unless the key is
    /// blocked; one above the [capacity](Quota::capacity) never is, and the refusal says so: its
    /// `retry_after` is `None`.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100)?);
    /// assert!(limiter.check_n("alice", 100).is_admitted());
    /// let never = limiter.check_n("alice", 101);
    /// assert_eq!(never.refusal().and_then(|refusal| refusal.retry_after), None);
    /// # Ok::<(), tollgate::quota::InvalidQuota>(())
    /// ```
    pub fn check_n(&self, key: impl AsRef<[u8]>, cost: u64) -> Decision {
        infallible(self.inner.check(key.as_ref(), cost))
    }

    /// Where `key` stands, with nothing taken.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100)?);
    /// limiter.check_n("alice", 30).admitted().ok_or("refused")?;
    /// let standing = limiter.peek("alice");
    /// assert_eq!((standing.remaining, standing.limit), (70, 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek(&self, key: impl AsRef<[u8]>) -> Standing {
        self.peek_n(key, 1)
    }

    /// What [`check_n`](Self::check_n) would answer, with nothing taken.
    pub fn peek_n(&self, key: impl AsRef<[u8]>, cost: u64) -> Standing {
        infallible(self.inner.peek(key.as_ref(), cost))
    }

    /// Gives back what a check took, as far as time has not given it back already, and answers
    /// where its key stands then. So a refund may return less than was taken, and never admits more
    /// than the quota promises.
    ///
    /// A permit knows its limiter: that of another gives nothing back here.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100)?);
    /// let permit = limiter.check_n("alice", 10).admitted().ok_or("refused")?;
    /// assert_eq!(permit.remaining, 90);
    /// assert_eq!(limiter.refund(permit).remaining, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund(&self, permit: Permit) -> Standing {
        infallible(self.inner.end(&permit.record, PermitEnd::Refund))
    }

    /// Forgets what was counted for `key`, and any block: it starts anew.
    pub fn reset(&self, key: impl AsRef<[u8]>) {
        infallible(self.inner.reset(key.as_ref()));
    }

    /// Refuses `key` for as long as `duration`, whatever is left of its quota: a cost of zero too.
    /// A longer block that is in force already stays.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(100)?);
    /// limiter.block("mallory", Duration::from_secs(600));
    /// assert!(limiter.peek("mallory").blocked);
    /// limiter.unblock("mallory");
    /// assert!(limiter.check("mallory").is_admitted());
    /// # Ok::<(), tollgate::quota::InvalidQuota>(())
    /// ```
    pub fn block(&self, key: impl AsRef<[u8]>, duration: Duration) -> Standing {
        infallible(self.inner.block(key.as_ref(), duration))
    }

    /// Ends the block of `key`. What was counted for it stays.
    pub fn unblock(&self, key: impl AsRef<[u8]>) -> Standing {
        infallible(self.inner.adjust_all(key.as_ref(), Change::Unblock))
    }

    /// Takes `estimate` units for `key`, to be settled when the true cost is known; with slots, for
    /// as long as the [`Reservation`] lives.
    pub fn reserve(&self, key: impl AsRef<[u8]>, estimate: u64) -> Decision<Reservation> {
        self.check_n(key, estimate).map(|permit| self.hold(permit))
    }
}

/// The answer of the memory store, which has it at once.
#[inline]
fn infallible<T>(reply: StoreReply<'_, Result<T, StoreError>, Infallible>) -> T {
    match reply.now() {
        Ok(answer) => answer,
        Err(_) => unreachable!("only the second phase of a call can fail"),
    }
}

impl<S> Limiter<S> {
    /// The quotas in force, in the order in which they were given.
    pub fn quotas(&self) -> impl Iterator<Item = &Quota> {
        self.inner.limits.iter().map(|limit| &limit.quota)
    }

    /// The store that keeps the counts.
    pub fn store(&self) -> &S {
        &self.inner.store
    }
}

impl<S> Inner<S> {
    /// Whether anything is to be freed when a reservation ends.
    fn has_slots(&self) -> bool {
        self.limits.iter().any(|limit| matches!(limit.quota.params(), LimitParams::Concurrency(_)))
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
