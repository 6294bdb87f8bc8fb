//! What the store's own tasks tell: one line in the log for every change of state, and figures for
//! the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tollgate::StoreError;
use tollgate::store::redis::Observer;
use tollgate_store::StoreErrorKind;

/// Keeps what it is told, for whoever shows it.
#[derive(Debug, Default)]
pub(super) struct StoreObserver {
    /// Failures that no caller saw, by kind: a store that is left alone is still asked how it is.
    probe_failures: [AtomicU64; StoreErrorKind::ALL.len()],
    /// What failed last, while a server is left alone.
    last_failure: Mutex<Option<StoreErrorKind>>,
}

impl StoreObserver {
    /// Failures that no caller saw.
    pub(super) fn probe_failures(&self) -> Vec<(StoreErrorKind, u64)> {
        let counts = self.probe_failures.iter().map(|count| count.load(Relaxed));
        StoreErrorKind::ALL.into_iter().zip(counts).collect()
    }

    /// Why a server is left alone, if one is.
    pub(super) fn last_failure(&self) -> Option<StoreErrorKind> {
        *self.lock()
    }

    /// A panic elsewhere leaves it whole: every change is a single assignment.
    fn lock(&self) -> MutexGuard<'_, Option<StoreErrorKind>> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for StoreObserver {
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        *self.lock() = Some(error.kind);
        tracing::warn!(server, %error, "the store is left alone for now: its breaker is open");
    }

    fn breaker_closed(&self, server: &str) {
        *self.lock() = None;
        tracing::info!(server, "the store is asked again: its breaker is closed");
    }

    fn refuses(&self, server: &str, error: &StoreError) {
        tracing::warn!(server, %error, "the store refuses some decisions: each limit's own policy makes them");
    }

    fn accepts_again(&self, server: &str) {
        tracing::info!(server, "the store refuses no decisions any more");
    }

    fn connected(&self, server: &str) {
        tracing::debug!(server, "connected to the store");
    }

    fn disconnected(&self, server: &str, error: &StoreError) {
        tracing::debug!(server, %error, "lost a connection to the store");
    }

    fn attempt_failed(&self, server: &str, error: &StoreError) {
        let mut last = self.lock();
        if last.is_some() {
            *last = Some(error.kind);
        }
        drop(last);
        if let Some(at) = StoreErrorKind::ALL.iter().position(|kind| *kind == error.kind) {
            self.probe_failures[at].fetch_add(1, Relaxed);
        }
        tracing::debug!(server, %error, "cannot connect to the store");
    }

    fn topology_changed(&self) {
        tracing::info!("other servers serve the cluster's slots");
    }

    fn primary_changed(&self, name: &str, server: &str) {
        tracing::info!(name, server, "the sentinels name another primary: all connections move");
    }

    fn task_died(&self, task: &'static str) {
        tracing::error!(task, "a task of the store died and is started again; please report this");
    }
}

#[cfg(test)]
mod tests;
