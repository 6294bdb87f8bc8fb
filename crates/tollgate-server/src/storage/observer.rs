//! Observes the store's tasks: logs each change of state, and counts for metrics.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollgate::StoreError;
use tollgate::store::redis::Observer;
use tollgate_net::lock;
use tollgate_store::StoreErrorKind;

/// The state of the store's servers, as reported by its tasks.
#[derive(Debug, Default)]
pub(super) struct StoreObserver {
    /// Failed attempts to connect while a circuit breaker is open, by kind. No caller sees them.
    probe_failures: [AtomicU64; StoreErrorKind::ALL.len()],
    /// Clock jumps of the servers.
    clock_leaps: AtomicU64,
    /// The last failure while a circuit breaker is open.
    last_failure: Mutex<Option<StoreErrorKind>>,
}

impl StoreObserver {
    /// Failures that no caller saw, by kind.
    pub(super) fn probe_failures(&self) -> Vec<(StoreErrorKind, u64)> {
        let counts = self.probe_failures.iter().map(|count| count.load(Relaxed));
        StoreErrorKind::ALL.into_iter().zip(counts).collect()
    }

    /// Clock jumps of the servers.
    pub(super) fn clock_leaps(&self) -> u64 {
        self.clock_leaps.load(Relaxed)
    }

    /// The error that opened a circuit breaker, if one is open.
    pub(super) fn last_failure(&self) -> Option<StoreErrorKind> {
        *lock(&self.last_failure)
    }
}

impl Observer for StoreObserver {
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        *lock(&self.last_failure) = Some(error.kind);
        tracing::warn!(server, %error, "circuit breaker open: not calling the store; each limit follows its on_store_failure");
    }

    fn breaker_closed(&self, server: &str) {
        *lock(&self.last_failure) = None;
        tracing::info!(server, "circuit breaker closed; calling the store again");
    }

    fn refuses(&self, server: &str, error: &StoreError) {
        tracing::warn!(server, %error, "Redis rejects some script calls; their limits follow on_store_failure");
    }

    fn accepts_again(&self, server: &str) {
        tracing::info!(server, "Redis accepts all script calls again");
    }

    fn connected(&self, server: &str) {
        tracing::debug!(server, "connected to the store");
    }

    fn disconnected(&self, server: &str, error: &StoreError) {
        tracing::debug!(server, %error, "lost a connection to the store");
    }

    fn attempt_failed(&self, server: &str, error: &StoreError) {
        let mut last = lock(&self.last_failure);
        if last.is_some() {
            *last = Some(error.kind);
        }
        drop(last);
        self.probe_failures[error.kind as usize].fetch_add(1, Relaxed);
        tracing::debug!(server, %error, "cannot connect to the store");
    }

    fn grace_period_began(&self, server: &str) {
        tracing::warn!(
            server,
            "grace period, expected on a new store: the store may have lost leases, so nodes report \
             theirs first. Until it is over, leased limits with `on_store_failure: closed` refuse; \
             the store decides each request of other leased limits"
        );
    }

    fn grace_period_ended(&self, server: &str) {
        tracing::info!(server, "grace period over: leases are in use again");
    }

    fn clock_leapt(&self, server: &str, by_us: i64) {
        self.clock_leaps.fetch_add(1, Relaxed);
        let (seconds, direction) =
            (by_us.unsigned_abs() / 1_000_000, if by_us > 0 { "ahead" } else { "back" });
        tracing::warn!(
            server,
            seconds,
            direction,
            "the store's clock jumped; state with a future date is corrected, and debts stay"
        );
    }

    fn topology_changed(&self) {
        tracing::info!("the slots of the cluster moved to other servers");
    }

    fn primary_changed(&self, name: &str, server: &str) {
        tracing::info!(
            name,
            server,
            "the sentinels name another primary; all connections move to it"
        );
    }

    fn task_died(&self, task: &'static str) {
        tracing::error!(task, "a task of the store panicked and restarts; please report this");
    }
}

#[cfg(test)]
mod tests;
