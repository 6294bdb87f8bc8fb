//! Takeovers: whether a server that became primary has all that the old primary acknowledged.
//!
//! Redis gives each stretch of a primary's writes an id, its history. A replica that is promoted
//! begins a new history, and keeps the id and the end of the one before. An old primary that joins
//! it goes on from there if it wrote nothing beyond that end; else it gets a full copy and forgets
//! its own history. So an old primary that went on, and that was never restarted, proves that the
//! new one lacks nothing. `CLUSTER FAILOVER` always leaves such a server, a crash never does.

/// What `INFO` says of a server: its run, and its replication history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationStatus {
    /// `run_id`: differs after each start of the server.
    pub run: u128,
    /// Whether the role is that of a replica.
    pub is_replica: bool,
    /// `master_replid`: the history that the server writes or follows.
    pub history: u128,
    /// `master_replid2`: the history that it went on from; zero if there is none.
    pub previous: u128,
    /// `second_repl_offset`: the end of that history, as this server had it.
    pub previous_end: i64,
}

/// The server that wrote a marker, and the history that it wrote at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerOwner {
    /// The run of the server.
    pub run: u128,
    /// Its history.
    pub history: u128,
}

impl MarkerOwner {
    /// Whether a primary wrote the marker itself, and was no replica of another server since.
    ///
    /// A primary without replicas may take a new id, which leaves no previous one; a promotion
    /// always leaves one. `marker.lua` mirrors this.
    pub const fn is_still(&self, server: &ReplicationStatus) -> bool {
        let same = server.history == self.history || server.previous == self.history;
        self.run == server.run && (same || server.previous == 0)
    }

    /// Whether `new`, a primary that has the marker, has all that its owner ever acknowledged.
    /// `old` is what the owner's address says of itself; `None` if it has yet to join.
    pub fn has_handed_over(
        &self,
        new: &ReplicationStatus,
        old: &ReplicationStatus,
    ) -> Option<bool> {
        // A server that restarted may have forgotten what it acknowledged.
        if old.run != self.run || new.run == self.run || new.previous != self.history {
            return Some(false);
        }
        if !old.is_replica || old.history != new.history {
            return if old.history == self.history { None } else { Some(false) };
        }
        Some(old.previous == self.history && old.previous_end == new.previous_end)
    }
}
