//! Leaves a server that fails alone, so that its failure costs nobody time.

use super::RedisOptions;
use crate::{StoreError, StoreErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::watch;

/// Closed while all is well; open after so many failures in a row, until a probe succeeds.
#[derive(Debug)]
pub(super) struct Breaker {
    consecutive_failures: AtomicU32,
    /// What is answered while it is open.
    open: watch::Sender<Option<StoreError>>,
    server: Box<str>,
    options: Arc<RedisOptions>,
}

impl Breaker {
    pub(super) fn new(server: &str, options: &Arc<RedisOptions>) -> Self {
        Self {
            consecutive_failures: AtomicU32::new(0),
            open: watch::Sender::new(None),
            server: server.into(),
            options: Arc::clone(options),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.borrow().is_some()
    }

    /// Refuses at once while open.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.open.borrow().clone().map_or(Ok(()), Err)
    }

    /// Ends a row of failures. Does not close an open breaker: only a probe knows that the failures
    /// ended, and not just one call.
    pub(super) fn succeed(&self) {
        if self.consecutive_failures.load(Ordering::Relaxed) != 0 {
            self.consecutive_failures.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a failure, and answers whether it was the one that opened the breaker.
    pub(super) fn fail(&self, error: &StoreError) -> bool {
        let failures = self.consecutive_failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures < self.options.breaker_errors.max(1) {
            return false;
        }
        let opened = self.open.send_if_modified(|open| {
            let left =
                || StoreError::new(StoreErrorKind::Busy, format!("left alone after {error}"));
            open.is_none() && open.replace(left()).is_none()
        });
        if opened {
            self.options.notify(|observer| observer.breaker_opened(&self.server, error));
        }
        opened
    }

    /// A probe succeeded.
    pub(super) fn close(&self) {
        self.consecutive_failures.store(0, Ordering::Relaxed);
        if self.open.send_if_modified(|open| open.take().is_some()) {
            self.options.notify(|observer| observer.breaker_closed(&self.server));
        }
    }

    /// Waits until it is open, or until it is not.
    pub(super) async fn wait_until(&self, open: bool) {
        // The sender lives as long as this.
        let _ = self.open.subscribe().wait_for(|now| now.is_some() == open).await;
    }
}

#[cfg(test)]
mod tests;
