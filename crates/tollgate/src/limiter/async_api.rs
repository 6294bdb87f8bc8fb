//! The async methods, for every store.

use super::{Decision, Limiter, Reservation, Standing};
use crate::Key;
use std::time::Duration;
use tollgate_store::{Change, Store, StoreError};

/// The methods for any store: async, and with an error if the store fails.
///
/// ```
/// use tollgate::{Decision, Limiter, Quota, StoreError};
///
/// /// Works with any store.
/// async fn page<S: tollgate::store::Store + 'static>(
///     limiter: &Limiter<S>,
///     user: &str,
/// ) -> Result<&'static str, StoreError> {
///     Ok(match limiter.check_async(user).await? {
///         Decision::Admitted(_) => "here you are",
///         Decision::Refused(_) => "not now",
///     })
/// }
/// # let limiter = Limiter::new(Quota::per_minute(1));
/// # let mut page = std::pin::pin!(page(&limiter, "alice"));
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(page.as_mut().poll(&mut context).is_ready());
/// ```
impl<S: Store + 'static> Limiter<S> {
    /// [`check`](Limiter::check) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether anything was charged is unknown then.
    pub async fn check_async(&self, key: impl Key) -> Result<Decision, StoreError> {
        self.check_n_async(key, 1).await
    }

    /// [`check_n`](Limiter::check_n) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether anything was charged is unknown then.
    pub async fn check_n_async(&self, key: impl Key, cost: u64) -> Result<Decision, StoreError> {
        self.inner.check(key.key_bytes().as_ref(), cost).await
    }

    /// [`peek`](Limiter::peek) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn peek_async(&self, key: impl Key) -> Result<Standing, StoreError> {
        self.peek_n_async(key, 1).await
    }

    /// [`peek_n`](Limiter::peek_n) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn peek_n_async(&self, key: impl Key, cost: u64) -> Result<Standing, StoreError> {
        self.inner.peek(key.key_bytes().as_ref(), cost).await
    }

    /// [`reset`](Limiter::reset) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn reset_async(&self, key: impl Key) -> Result<(), StoreError> {
        self.inner.reset(key.key_bytes().as_ref()).await
    }

    /// [`block`](Limiter::block) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn block_async(
        &self,
        key: impl Key,
        duration: Duration,
    ) -> Result<Standing, StoreError> {
        self.inner.block(key.key_bytes().as_ref(), duration).await
    }

    /// [`unblock`](Limiter::unblock) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn unblock_async(&self, key: impl Key) -> Result<Standing, StoreError> {
        self.inner.adjust_all(key.key_bytes().as_ref(), Change::Unblock).await
    }

    /// [`reserve`](Limiter::reserve) for any store.
    ///
    /// # Errors
    ///
    /// If the store fails. Whether anything was charged is unknown then.
    pub async fn reserve_async(
        &self,
        key: impl Key,
        estimate: u64,
    ) -> Result<Decision<Reservation<S>>, StoreError> {
        let decision = self.inner.reserve(key.key_bytes().as_ref(), estimate).await?;
        Ok(decision.map(|record| Reservation::new(self, record)))
    }
}
