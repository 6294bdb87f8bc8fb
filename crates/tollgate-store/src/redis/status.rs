//! How it is with the servers at the moment.

/// How it is with the servers at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How many servers there are; none if a cluster's are not known yet.
    pub servers: usize,
    /// How many of them are left alone because they failed.
    pub open_breakers: usize,
    /// How many have no connection.
    pub disconnected: usize,
    /// How many requests wait.
    pub waiting: usize,
    /// How many of the store's own tasks died and were started again, ever.
    pub task_restarts: usize,
}

impl Status {
    /// Whether every server can be asked.
    pub const fn is_ready(&self) -> bool {
        self.servers > 0 && self.open_breakers == 0 && self.disconnected == 0
    }
}
