//! Takeovers: checks whether a new primary has all writes that the old one acknowledged.
//!
//! Redis gives each stretch of a primary's writes an id, its history. A promoted replica begins a
//! new history, and keeps the id and the end of the previous one. If the old primary wrote nothing
//! beyond that end, it joins the new one by continuing. Otherwise it gets a full copy and drops its
//! own history. So an old primary that continued, without a restart, proves that the new one lacks
//! nothing. `CLUSTER FAILOVER` always leaves such a server, a crash never does.

/// The `INFO` of a server: its run, and its replication history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationStatus {
    /// `run_id`: changes with each start of the server.
    pub run: u128,
    /// Whether the server is a replica.
    pub is_replica: bool,
    /// `master_replid`: the history that the server writes or follows.
    pub history: u128,
    /// `master_replid2`: the previous history; zero if there is none.
    pub previous: u128,
    /// `second_repl_offset`: the end of the previous history on this server.
    pub previous_end: i64,
}

/// The server that wrote a marker, and its history at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerOwner {
    /// The run of the server.
    pub run: u128,
    /// The history of the server.
    pub history: u128,
}

/// A wait for a proof of a takeover. What a process waited is the age of the marker that it then
/// writes.
///
/// The age may count no time before the server took over: on a server that loses more writes
/// meanwhile, the grace period would end before every process has reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct TakeoverWait<S> {
    /// What the server showed, and when it first did.
    shown: Option<(S, u64)>,
}

impl<S: PartialEq> TakeoverWait<S> {
    /// The time for which the server has shown this: another server's marker, and its own run and
    /// history. The wait starts again for another server or marker.
    pub fn waited_us(&mut self, shown: S, now_us: u64) -> u64 {
        match &self.shown {
            Some((known, since_us)) if *known == shown => now_us.saturating_sub(*since_us),
            _ => {
                self.shown = Some((shown, now_us));
                0
            }
        }
    }
}

impl MarkerOwner {
    /// Whether a primary wrote the marker itself, and has not been a replica since.
    ///
    /// A primary without replicas may take a new id, which leaves no previous one; a promotion
    /// always leaves one. `marker.lua` mirrors this.
    pub const fn is_still(&self, server: &ReplicationStatus) -> bool {
        let same = server.history == self.history || server.previous == self.history;
        self.run == server.run && (same || server.previous == 0)
    }

    /// Whether `new`, a primary with the marker, has all writes that the marker's owner
    /// acknowledged. `old` is the status of the owner's address; `None` if it has not joined yet.
    pub fn has_handed_over(
        &self,
        new: &ReplicationStatus,
        old: &ReplicationStatus,
    ) -> Option<bool> {
        // After a restart, a server may have lost acknowledged writes.
        if old.run != self.run || new.run == self.run || new.previous != self.history {
            return Some(false);
        }
        if !old.is_replica || old.history != new.history {
            return if old.history == self.history { None } else { Some(false) };
        }
        Some(old.previous == self.history && old.previous_end == new.previous_end)
    }
}
