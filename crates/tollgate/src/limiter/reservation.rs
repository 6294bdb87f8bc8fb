//! Reservations: charges whose real cost is known later.

use super::decision::{Permit, PermitRecord, Standing};
use super::detach::{run_to_completion, spawn_detached};
use super::store_calls::PermitEnd;
use super::{Limiter, infallible};
use tollgate_store::{MemoryStore, Store, StoreError};

/// A charge of an estimate, until its real cost is known.
///
/// * [`settle`](Self::settle) sets the real cost. If it is lower, the rest is given back. If it is
///   higher, the difference is charged even if it does not fit, and the key is in debt.
/// * [`cancel`](Self::cancel) gives everything back.
/// * Dropping it keeps the estimate as the cost.
///
/// All three free the slots of a [concurrency](crate::Quota::concurrency) quota at once.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let tokens = Limiter::new(Quota::per_minute(10_000));
/// let reservation = tokens.reserve("alice", 4_000).admitted().ok_or("refused")?;
/// // ... call the model, which says how many tokens it really used ...
/// let standing = reservation.settle(1_200);
/// assert_eq!(standing.remaining, 8_800);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With slots it is a guard: the slot is held as long as it lives, but not longer than the quota's
/// [`ttl`](crate::Quota::with_ttl), 30 seconds by default.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let uploads = Limiter::new(Quota::concurrency(1));
/// let first = uploads.reserve("alice", 1);
/// assert!(first.is_admitted());
/// assert!(!uploads.reserve("alice", 1).is_admitted());
/// drop(first);
/// assert!(uploads.reserve("alice", 1).is_admitted());
/// ```
///
/// Dropping cannot wait for a remote store: a task of the current tokio runtime frees the slots.
/// Without a runtime they are free when their `ttl` has passed.
#[derive(Debug)]
#[must_use = "dropped at once, its slots are free again"]
pub struct Reservation<S: Store + 'static = MemoryStore> {
    limiter: Limiter<S>,
    /// `None` once it has ended.
    record: Option<PermitRecord>,
}

impl<S: Store> Reservation<S> {
    pub(super) fn new(limiter: &Limiter<S>, record: PermitRecord) -> Self {
        Self { limiter: limiter.clone(), record: Some(record) }
    }

    /// The permit ([example](Reservation)).
    pub fn permit(&self) -> &Permit {
        match &self.record {
            Some(record) => &record.permit,
            None => unreachable!("only the verbs that consume a reservation take its permit"),
        }
    }

    /// [`settle`](Reservation::settle) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. The estimate may stand then.
    pub async fn settle_async(self, actual: u64) -> Result<Standing, StoreError> {
        self.end(PermitEnd::Settle(actual)).await
    }

    /// [`cancel`](Reservation::cancel) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. The estimate may stand then.
    pub async fn cancel_async(self) -> Result<Standing, StoreError> {
        self.end(PermitEnd::Refund).await
    }

    /// Runs to completion even if the caller drops the future: a second call could free the slot of
    /// another.
    async fn end(mut self, end: PermitEnd) -> Result<Standing, StoreError> {
        let (limiter, record) = (self.limiter.clone(), self.take());
        run_to_completion(async move { limiter.inner.end(&record, end).await }).await
    }

    fn take(&mut self) -> PermitRecord {
        match self.record.take() {
            Some(record) => record,
            None => unreachable!("only the verbs that consume a reservation end it"),
        }
    }
}

impl Reservation {
    /// Ends it with the real cost. Returns the state of the key ([example](Reservation)).
    pub fn settle(mut self, actual: u64) -> Standing {
        let record = self.take();
        infallible(self.limiter.inner.end(&record, PermitEnd::Settle(actual)))
    }

    /// Gives everything back. Returns the state of the key ([example](Reservation)).
    pub fn cancel(mut self) -> Standing {
        let record = self.take();
        infallible(self.limiter.inner.end(&record, PermitEnd::Refund))
    }
}

impl<S: Store + 'static> Drop for Reservation<S> {
    fn drop(&mut self) {
        if let Some(record) = self.record.take()
            && self.limiter.inner.has_slots()
        {
            let limiter = self.limiter.clone();
            spawn_detached(async move {
                // If the store fails, the slots are free when their `ttl` has passed.
                let _ = limiter.inner.end(&record, PermitEnd::Keep).await;
            });
        }
    }
}
