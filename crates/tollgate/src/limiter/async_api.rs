//! The verbs with a future, for every store.

use super::store_calls::PermitEnd;
use super::{Decision, Limiter, Permit, Reservation, Standing};
use std::time::Duration;
use tollgate_store::{Change, Store, StoreError};

/// The verbs on any store. They differ from those in memory by their future, and by the error of a
/// store that could not decide.
impl<S: Store + 'static> Limiter<S> {
    /// [`check_n`](Limiter::check_n), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store could not decide. Whether anything was taken is then unknown.
    pub async fn check_async(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
    ) -> Result<Decision, StoreError> {
        self.inner.check(key.as_ref(), cost).await
    }

    /// [`peek_n`](Limiter::peek_n), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store could not answer.
    pub async fn peek_async(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
    ) -> Result<Standing, StoreError> {
        self.inner.peek(key.as_ref(), cost).await
    }

    /// [`refund`](Limiter::refund), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store did not say that it has done so.
    pub async fn refund_async(&self, permit: Permit) -> Result<Standing, StoreError> {
        self.inner.end(&permit.record, PermitEnd::Refund).await
    }

    /// [`reset`](Limiter::reset), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store did not say that it has done so.
    pub async fn reset_async(&self, key: impl AsRef<[u8]>) -> Result<(), StoreError> {
        self.inner.reset(key.as_ref()).await
    }

    /// [`block`](Limiter::block), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store did not say that it has done so.
    pub async fn block_async(
        &self,
        key: impl AsRef<[u8]>,
        duration: Duration,
    ) -> Result<Standing, StoreError> {
        self.inner.block(key.as_ref(), duration).await
    }

    /// [`unblock`](Limiter::unblock), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store did not say that it has done so.
    pub async fn unblock_async(&self, key: impl AsRef<[u8]>) -> Result<Standing, StoreError> {
        self.inner.adjust_all(key.as_ref(), Change::Unblock).await
    }

    /// [`reserve`](Limiter::reserve), whatever the store.
    ///
    /// # Errors
    ///
    /// When the store could not decide. Whether anything was taken is then unknown.
    pub async fn reserve_async(
        &self,
        key: impl AsRef<[u8]>,
        estimate: u64,
    ) -> Result<Decision<Reservation<S>>, StoreError> {
        let decision = self.inner.check(key.as_ref(), estimate).await?;
        Ok(decision.map(|permit| self.hold(permit)))
    }

    /// Makes a reservation of a permit, such as one that was [waited](Limiter::wait) for: its cost
    /// can then be settled, and its slots are freed when the reservation ends.
    pub fn hold(&self, permit: Permit) -> Reservation<S> {
        Reservation::new(self.clone(), permit)
    }
}
