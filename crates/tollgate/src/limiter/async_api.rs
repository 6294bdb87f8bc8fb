//! The async methods, for every store.

use super::store_calls::PermitEnd;
use super::{Decision, Limiter, Permit, Reservation, Standing};
use std::time::Duration;
use tollgate_store::{Change, Store, StoreError};

/// The methods for any store: async, and with an error if the store fails.
impl<S: Store + 'static> Limiter<S> {
    /// [`check_n`](Limiter::check_n) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether anything was charged is unknown then.
    pub async fn check_async(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
    ) -> Result<Decision, StoreError> {
        self.inner.check(key.as_ref(), cost).await
    }

    /// [`peek_n`](Limiter::peek_n) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn peek_async(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
    ) -> Result<Standing, StoreError> {
        self.inner.peek(key.as_ref(), cost).await
    }

    /// [`refund`](Limiter::refund) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn refund_async(&self, permit: Permit) -> Result<Standing, StoreError> {
        self.inner.end(&permit.record, PermitEnd::Refund).await
    }

    /// [`reset`](Limiter::reset) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn reset_async(&self, key: impl AsRef<[u8]>) -> Result<(), StoreError> {
        self.inner.reset(key.as_ref()).await
    }

    /// [`block`](Limiter::block) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn block_async(
        &self,
        key: impl AsRef<[u8]>,
        duration: Duration,
    ) -> Result<Standing, StoreError> {
        self.inner.block(key.as_ref(), duration).await
    }

    /// [`unblock`](Limiter::unblock) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn unblock_async(&self, key: impl AsRef<[u8]>) -> Result<Standing, StoreError> {
        self.inner.adjust_all(key.as_ref(), Change::Unblock).await
    }

    /// [`reserve`](Limiter::reserve) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether anything was charged is unknown then.
    pub async fn reserve_async(
        &self,
        key: impl AsRef<[u8]>,
        estimate: u64,
    ) -> Result<Decision<Reservation<S>>, StoreError> {
        let decision = self.inner.check(key.as_ref(), estimate).await?;
        Ok(decision.map(|permit| self.hold(permit)))
    }

    /// Turns a permit into a reservation, such as one from [`wait`](Limiter::wait): its cost can be
    /// settled, and its slots are freed when the reservation ends.
    pub fn hold(&self, permit: Permit) -> Reservation<S> {
        Reservation::new(self.clone(), permit)
    }
}
