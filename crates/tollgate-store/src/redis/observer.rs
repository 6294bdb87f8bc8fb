//! What changes while the store runs.

use crate::StoreError;
use std::fmt;

/// Is told of every change of state, once each. Called from the store's own tasks, so it must not
/// block.
///
/// `server` is an address as it was configured or as a cluster or a sentinel named it; it never
/// holds credentials.
pub trait Observer: fmt::Debug + Send + Sync {
    /// From now on the server is left alone; `error` was the last of a row.
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// A probe succeeded, and the server is asked again.
    fn breaker_closed(&self, server: &str) {
        let _ = server;
    }

    /// The server refuses calls of one sort, and is asked all the same: it may answer to others.
    fn refuses(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// The server has answered to calls of that sort for a while.
    fn accepts_again(&self, server: &str) {
        let _ = server;
    }

    /// A connection came about.
    fn connected(&self, server: &str) {
        let _ = server;
    }

    /// A connection was lost or given up.
    fn disconnected(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// A cluster's slots are served by other servers than before.
    fn topology_changed(&self) {}

    /// The sentinels name another primary for `name` than before, and all connections are given up
    /// for it.
    fn primary_changed(&self, name: &str, server: &str) {
        let _ = (name, server);
    }

    /// An attempt of the store's own failed: to connect, or to find out whether the server decides
    /// again. What fails for a caller is the caller's to count.
    fn attempt_failed(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// A task of the store died, which is a mistake in the program; it is being started again.
    fn task_died(&self, task: &'static str) {
        let _ = task;
    }
}
