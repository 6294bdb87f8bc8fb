//! Health of one server: a circuit breaker for failures, a tracker for rejected scripts.

use crate::redis::RedisOptions;
use crate::sync::lock_mutex;
use crate::{StoreError, StoreErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A circuit breaker: opens after `breaker_errors` failures in a row, closes when a probe succeeds.
#[derive(Debug)]
pub(crate) struct Breaker {
    consecutive_failures: AtomicU32,
    /// The error that calls get while the breaker is open.
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

    /// Returns the error while the breaker is open.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.open.borrow().clone().map_or(Ok(()), Err)
    }

    /// Resets the count of failures. Does not close an open breaker: one call may succeed by
    /// chance.
    pub(crate) fn succeed(&self) {
        if self.consecutive_failures.load(Ordering::Relaxed) != 0 {
            self.consecutive_failures.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a failure. Returns whether it opened the breaker.
    pub(crate) fn fail(&self, error: &StoreError) -> bool {
        let failures = self.consecutive_failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures < self.options.breaker_errors.max(1) {
            return false;
        }
        let opened = self.open.send_if_modified(|open| {
            let text = || format!("circuit breaker open after {error}");
            let error = || StoreError::new(StoreErrorKind::BreakerOpen, text());
            open.is_none() && open.replace(error()).is_none()
        });
        if opened {
            self.options.notify(|observer| observer.breaker_opened(&self.server, error));
        }
        opened
    }

    /// Closes the breaker, because a probe succeeded.
    pub(crate) fn close(&self) {
        self.consecutive_failures.store(0, Ordering::Relaxed);
        if self.open.send_if_modified(|open| open.take().is_some()) {
            self.options.notify(|observer| observer.breaker_closed(&self.server));
        }
    }

    /// Waits until the breaker is open, or until it is closed.
    pub(crate) async fn wait_until(&self, open: bool) {
        // The sender lives as long as `self`.
        let _ = self.open.subscribe().wait_for(|now| now.is_some() == open).await;
    }
}

/// Answered calls in a row that end a refusal. One bad key among many is refused repeatedly, but
/// reported once.
const ANSWERED_LEAST: u32 = 100;

/// The script that a server refuses: a right is missing, or a key has another type. Only the first
/// refused script is tracked, because several mostly have one cause.
#[derive(Debug, Default)]
pub(crate) struct RefusalTracker {
    /// Whether a script is refused: the only check that most calls need.
    any: AtomicBool,
    refused: Mutex<Option<RefusedScript>>,
}

#[derive(Debug)]
struct RefusedScript {
    script: &'static str,
    /// Answered calls since the last refusal.
    answered: u32,
}

impl RefusalTracker {
    /// Records a refusal of this script. Returns whether it is the first.
    pub(crate) fn record_refusal(&self, script: &'static str) -> bool {
        let mut refused = lock_mutex(&self.refused);
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

    /// Records an answer to this script. Returns whether it ends the refusals.
    pub(crate) fn record_answer(&self, script: &'static str) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let mut refused = lock_mutex(&self.refused);
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
}

#[cfg(test)]
mod tests;
