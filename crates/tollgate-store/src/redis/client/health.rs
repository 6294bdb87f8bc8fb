//! Leaves a server that fails alone, so that its failure costs nobody time.

use crate::redis::RedisOptions;
use crate::{StoreError, StoreErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Closed while all is well; open after so many failures in a row, until a probe succeeds.
#[derive(Debug)]
pub(crate) struct Breaker {
    consecutive_failures: AtomicU32,
    /// What is answered while it is open.
    open: watch::Sender<Option<StoreError>>,
    server: Box<str>,
    options: Arc<RedisOptions>,
}

impl Breaker {
    pub(crate) fn new(server: &str, options: &Arc<RedisOptions>) -> Self {
        Self {
            consecutive_failures: AtomicU32::new(0),
            open: watch::Sender::new(None),
            server: server.into(),
            options: Arc::clone(options),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.borrow().is_some()
    }

    /// Refuses at once while open.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.open.borrow().clone().map_or(Ok(()), Err)
    }

    /// Ends a row of failures. Does not close an open breaker: only a probe knows that the failures
    /// ended, and not just one call.
    pub(crate) fn succeed(&self) {
        if self.consecutive_failures.load(Ordering::Relaxed) != 0 {
            self.consecutive_failures.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a failure, and answers whether it was the one that opened the breaker.
    pub(crate) fn fail(&self, error: &StoreError) -> bool {
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
    pub(crate) fn close(&self) {
        self.consecutive_failures.store(0, Ordering::Relaxed);
        if self.open.send_if_modified(|open| open.take().is_some()) {
            self.options.notify(|observer| observer.breaker_closed(&self.server));
        }
    }

    /// Waits until it is open, or until it is not.
    pub(crate) async fn wait_until(&self, open: bool) {
        // The sender lives as long as this.
        let _ = self.open.subscribe().wait_for(|now| now.is_some() == open).await;
    }
}

/// So many calls in a row have to be answered until that is over. One bad key among many is refused
/// again and again, and is one piece of news.
const ANSWERED_LEAST: u32 = 100;

/// What is refused. Of several sorts the first counts: they have the same cause more often than
/// not.
#[derive(Debug, Default)]
pub(crate) struct RefusalTracker {
    /// Whether there are any, which is all that most calls have to know.
    any: AtomicBool,
    refused: Mutex<Option<RefusedScript>>,
}

#[derive(Debug)]
struct RefusedScript {
    script: &'static str,
    /// Calls that were answered since.
    answered: u32,
}

impl RefusalTracker {
    /// A call of this script was refused. Answers whether that is news.
    pub(crate) fn record_refusal(&self, script: &'static str) -> bool {
        let mut refused = self.lock();
        match refused.as_mut() {
            Some(known) => {
                if known.script == script {
                    known.answered = 0;
                }
                false
            }
            None => {
                *refused = Some(RefusedScript { script, answered: 0 });
                self.any.store(true, Ordering::Relaxed);
                true
            }
        }
    }

    /// A call of this script was answered. Answers whether that ends the refusals.
    pub(crate) fn record_answer(&self, script: &'static str) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let mut refused = self.lock();
        let Some(known) = refused.as_mut().filter(|known| known.script == script) else {
            return false;
        };
        known.answered += 1;
        let is_over = known.answered >= ANSWERED_LEAST;
        if is_over {
            *refused = None;
            self.any.store(false, Ordering::Relaxed);
        }
        is_over
    }

    /// A panic elsewhere leaves it whole.
    fn lock(&self) -> MutexGuard<'_, Option<RefusedScript>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
