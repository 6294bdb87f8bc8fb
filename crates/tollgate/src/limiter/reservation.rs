//! A charge whose true cost is known later.

use super::decision::{Permit, Standing};
use super::detach::{run_to_completion, spawn_detached};
use super::store_calls::PermitEnd;
use super::{Limiter, infallible};
use tollgate_store::{MemoryStore, Store, StoreError};

/// What was admitted for an estimate, until its true cost is known.
///
/// * [`settle`](Self::settle) says what it was in the end. Less than the estimate: the rest is
///   given back. More: the difference is charged, whether it fits or not, and the key starts from
///   that debt.
/// * [`cancel`](Self::cancel) says that nothing was done, and gives all of it back.
/// * Dropping it keeps the estimate as the cost: work that was abandoned half-way has cost
///   something.
///
/// All three free the slots of a [concurrency](crate::Quota::concurrency) quota at once.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let tokens = Limiter::new(Quota::per_minute(10_000)?);
/// let reservation = tokens.reserve("alice", 4_000).admitted().ok_or("refused")?;
/// // ... call the model, which says how many tokens it really used ...
/// let standing = reservation.settle(1_200);
/// assert_eq!(standing.remaining, 8_800);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With slots it is a guard: the slot is taken for as long as it lives.
///
/// ```
/// use tollgate::{Limiter, Quota};
///
/// let uploads = Limiter::new(Quota::concurrency(1)?);
/// let first = uploads.reserve("alice", 1);
/// assert!(first.is_admitted());
/// assert!(!uploads.reserve("alice", 1).is_admitted());
/// drop(first);
/// assert!(uploads.reserve("alice", 1).is_admitted());
/// # Ok::<(), tollgate::quota::InvalidQuota>(())
/// ```
///
/// Dropping cannot wait for a store elsewhere: there the slots are freed by a task of the current
/// tokio runtime, and without one when their time to live ends.
#[derive(Debug)]
#[must_use = "dropped at once, its slots are free again"]
pub struct Reservation<S: Store + 'static = MemoryStore> {
    limiter: Limiter<S>,
    /// `None` once it has ended.
    permit: Option<Permit>,
}

impl<S: Store> Reservation<S> {
    pub(super) fn new(limiter: Limiter<S>, permit: Permit) -> Self {
        Self { limiter, permit: Some(permit) }
    }

    /// The numbers of the admission.
    pub fn permit(&self) -> &Permit {
        match &self.permit {
            Some(permit) => permit,
            None => unreachable!("only the verbs that consume a reservation take its permit"),
        }
    }

    /// [`settle`](Reservation::settle), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store did not say that it has done so. If it has not, the estimate stands.
    pub async fn settle_async(self, actual: u64) -> Result<Standing, StoreError> {
        self.end(PermitEnd::Settle(actual)).await
    }

    /// [`cancel`](Reservation::cancel), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store did not say that it has done so. If it has not, the estimate stands.
    pub async fn cancel_async(self) -> Result<Standing, StoreError> {
        self.end(PermitEnd::Refund).await
    }

    /// Once begun, this is finished even if nobody waits for it: told twice, a store could free
    /// another's slot.
    async fn end(mut self, end: PermitEnd) -> Result<Standing, StoreError> {
        let (limiter, permit) = (self.limiter.clone(), self.take());
        run_to_completion(async move { limiter.inner.end(&permit.record, end).await }).await
    }

    fn take(&mut self) -> Permit {
        match self.permit.take() {
            Some(permit) => permit,
            None => unreachable!("only the verbs that consume a reservation end it"),
        }
    }
}

impl Reservation {
    /// Ends it with what it really cost, and answers where the key stands then.
    pub fn settle(mut self, actual: u64) -> Standing {
        let permit = self.take();
        infallible(self.limiter.inner.end(&permit.record, PermitEnd::Settle(actual)))
    }

    /// Ends it as if nothing had been done, and answers where the key stands then.
    pub fn cancel(mut self) -> Standing {
        let permit = self.take();
        infallible(self.limiter.inner.end(&permit.record, PermitEnd::Refund))
    }
}

impl<S: Store + 'static> Drop for Reservation<S> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take()
            && self.limiter.inner.has_slots()
        {
            let limiter = self.limiter.clone();
            spawn_detached(async move {
                // A store that cannot be told frees the slots when their time to live ends.
                let _ = limiter.inner.end(&permit.record, PermitEnd::Keep).await;
            });
        }
    }
}
