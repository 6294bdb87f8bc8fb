//! How it is with the servers at the moment.

/// How it is with the servers at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How many servers there are; none if a cluster's are not known yet.
    pub servers: usize,
    /// How many of them are left alone because they failed.
    pub open: usize,
    /// How many have no connection.
    pub cut_off: usize,
    /// How many requests wait.
    pub waiting: usize,
    /// How many of the store's own tasks died and were started again, ever.
    pub died: usize,
}

impl Status {
    /// Whether every server can be asked.
    pub const fn is_ready(&self) -> bool {
        self.servers > 0 && self.open == 0 && self.cut_off == 0
    }
}
