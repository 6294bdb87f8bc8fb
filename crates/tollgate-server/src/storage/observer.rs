//! One line in the log for every change of state.

use tollgate::StoreError;
use tollgate::store::redis::Observer;

/// Writes what it is told to the log.
#[derive(Debug)]
pub(super) struct Log;

impl Observer for Log {
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        tracing::warn!(server, %error, "the store is left alone for now: its breaker is open");
    }

    fn breaker_closed(&self, server: &str) {
        tracing::info!(server, "the store is asked again: its breaker is closed");
    }

    fn connected(&self, server: &str) {
        tracing::debug!(server, "connected to the store");
    }

    fn disconnected(&self, server: &str, error: &StoreError) {
        tracing::debug!(server, %error, "lost a connection to the store");
    }

    fn topology_changed(&self) {
        tracing::info!("other servers serve the cluster's slots");
    }

    fn task_died(&self, task: &'static str) {
        tracing::error!(task, "a task of the store died and is started again; please report this");
    }
}
