//! The state of the servers, and the changes that the Redis store reports.

use crate::StoreError;
use std::fmt;

/// Receives each change of state once. The store's own tasks call it, so it must not block.
///
/// `server` is an address as configured, or as a cluster or sentinel named it; it never contains
/// credentials.
pub trait Observer: fmt::Debug + Send + Sync {
    /// The server's circuit breaker opened; `error` was the last failure.
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// A probe succeeded, and the server is called again.
    fn breaker_closed(&self, server: &str) {
        let _ = server;
    }

    /// The server refuses one script. It is still called, since it may run others.
    fn refuses(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// The server has accepted the script again for a while.
    fn accepts_again(&self, server: &str) {
        let _ = server;
    }

    /// A connection was made.
    fn connected(&self, server: &str) {
        let _ = server;
    }

    /// A connection was lost or closed.
    fn disconnected(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// Slots of a cluster moved to other servers.
    fn topology_changed(&self) {}

    /// The sentinels name another primary for `name`; all connections move to it.
    fn primary_changed(&self, name: &str, server: &str) {
        let _ = (name, server);
    }

    /// The server may have lost writes. In the grace period, no units of leased limits are taken
    /// from it. The store decides these limits or refuses.
    fn grace_period_began(&self, server: &str) {
        let _ = server;
    }

    /// The grace period is over.
    fn grace_period_ended(&self, server: &str) {
        let _ = server;
    }

    /// The server's clock jumped by `by_us` relative to this process's clock, or a server with a
    /// different clock took over. Negative means backwards. State with a wrong date is corrected at
    /// its next use.
    fn clock_leapt(&self, server: &str, by_us: i64) {
        let _ = (server, by_us);
    }

    /// A connection attempt or a probe failed. Failures of callers are not reported here.
    fn attempt_failed(&self, server: &str, error: &StoreError) {
        let _ = (server, error);
    }

    /// A task of the store panicked, which is a bug; it is restarted.
    fn task_died(&self, task: &'static str) {
        let _ = task;
    }
}

/// The state of the servers at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Servers; zero until a cluster's slot map is read.
    pub servers: usize,
    /// Servers with an open circuit breaker.
    pub open_breakers: usize,
    /// Servers without a connection.
    pub disconnected: usize,
    /// Waiting requests.
    pub waiting: usize,
    /// Tasks of the store that panicked and were restarted, since the start.
    pub task_restarts: usize,
}

impl Status {
    /// Whether every server can be called.
    pub const fn is_ready(&self) -> bool {
        self.servers > 0 && self.open_breakers == 0 && self.disconnected == 0
    }
}
