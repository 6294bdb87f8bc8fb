//! Detects that a primary may have lost writes: another server, a restart, or missing keys (I6).

use super::CLOCK_RATE_ERROR;

/// A primary's marker: the run of the server that wrote it, and its age. A process that finds the
/// marker missing, or of another run, writes a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerReading {
    /// The marker's id; another value means that the primary changed.
    pub run: u128,
    /// The age of the marker.
    pub age_us: u64,
    /// The marker of another server that this one replaced during the check.
    pub replaced: Option<u128>,
}

/// The marker that a server showed right after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenMarker {
    /// The id of the marker.
    Id(u128),
    /// The server has no marker.
    Missing,
    /// The marker was not read: its slot is moving, or the slots of the server are unknown.
    NotRead,
}

/// Whether a process may ask a primary for units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The primary keeps its acknowledged writes.
    Trusted,
    /// Another server took over, or the slot of the marker moved. Whether writes were lost is not
    /// known yet.
    TakenOver,
    /// Grace period: the primary may have lost entries, and holders may not have re-asserted them
    /// yet.
    GracePeriod,
    /// The marker must be read first.
    Unknown,
}

/// A process's knowledge of one primary.
///
/// A primary that may have lost writes gets a grace period: no process asks it for units until
/// every process has had time to re-assert its own. A process that starts later need not wait: the
/// marker's age shows that the grace period is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrimaryMonitor {
    run: Option<u128>,
    /// The latest time at which the marker can have been written.
    since_us: u64,
    confirmed_us: Option<u64>,
    /// The marker of the previous primary.
    replaced: Option<u128>,
}

impl PrimaryMonitor {
    /// Records a marker that was requested at `sent_us` and arrived at `now_us`. Returns whether
    /// the primary changed, so that all its leases must be re-asserted.
    pub fn record_marker(&mut self, sent_us: u64, now_us: u64, marker: &MarkerReading) -> bool {
        let changed = self.run != Some(marker.run);
        let first = self.run.is_none();
        let replaced = if changed { self.run } else { None };
        self.replaced = marker.replaced.or(replaced).or(self.replaced);
        self.run = Some(marker.run);
        self.confirmed_us = Some(sent_us);
        let since_us = now_us.saturating_sub(marker.age_us);
        self.since_us = if changed { since_us } else { self.since_us.min(since_us) };
        changed && !first
    }

    /// The least age of a marker; `None` if this process does not know the marker.
    pub fn marker_age_us(&self, marker: u128, now_us: u64) -> Option<u64> {
        let age_us = super::shortest_local_us(now_us.saturating_sub(self.since_us));
        (self.run == Some(marker)).then_some(age_us)
    }

    /// Whether a marker was ever read.
    pub fn has_marker(&self) -> bool {
        self.run.is_some()
    }

    /// Records that the connection was lost: the next one may reach another server.
    pub fn connection_lost(&mut self) {
        self.confirmed_us = None;
    }

    /// Whether the marker should be read again.
    pub fn is_check_due(&self, now_us: u64, grace_us: u64) -> bool {
        self.confirmed_us.is_none_or(|at_us| now_us >= at_us + grace_us / 4)
    }

    /// Whether the primary may be asked for units.
    pub fn trust(&self, now_us: u64, grace_us: u64) -> Trust {
        match self.confirmed_us {
            Some(at_us) if now_us < at_us + grace_us / 2 => {
                let is_over = now_us >= self.grace_until_us(grace_us);
                if is_over { Trust::Trusted } else { Trust::GracePeriod }
            }
            _ => Trust::Unknown,
        }
    }

    /// Whether a grant may be spent; `None` if the marker must be read again. The grant was
    /// requested at `sent_us`, arrived at `arrived_us`, and its ledger was `age_us` old.
    ///
    /// A missing ledger belongs to an unused key, or was lost with the entries of other holders.
    /// The primary lost nothing if the marker was read after the ledger began, and the grace period
    /// was over when the units were requested.
    pub fn is_grant_valid(
        &self,
        (sent_us, arrived_us): (u64, u64),
        age_us: u64,
        grace_us: u64,
    ) -> Option<bool> {
        let begun_us = arrived_us.saturating_sub(super::shortest_local_us(age_us));
        let seen = self.confirmed_us.is_some_and(|at_us| at_us >= begun_us);
        seen.then_some(sent_us >= self.grace_until_us(grace_us))
    }

    /// Whether a decision of the store counts; `None` if the marker must be read again. It was
    /// requested at `times_us.0` and arrived at `times_us.1`.
    ///
    /// `marker` is the server's marker right after the decision. If this process knows it, the
    /// state had lost nothing. A replica that took over has this marker too, so a connection newer
    /// than the last reading proves nothing. The marker of the previous server also counts: if the
    /// new one lost writes, its grace period began later. Without a marker, only a reading after
    /// the decision proves that.
    pub fn is_decision_valid(
        &self,
        (sent_us, arrived_us): (u64, u64),
        marker: SeenMarker,
        is_connection_known: bool,
        grace_us: u64,
    ) -> Option<bool> {
        let is_read_later = self.confirmed_us.is_some_and(|at_us| at_us >= arrived_us);
        let seen = is_read_later || is_connection_known && marker != SeenMarker::NotRead;
        let is_unknown = match marker {
            SeenMarker::Id(id) => seen && ![self.run, self.replaced].contains(&Some(id)),
            SeenMarker::Missing => true,
            SeenMarker::NotRead => false,
        };
        if is_unknown {
            return Some(false);
        }
        seen.then_some(sent_us >= self.grace_until_us(grace_us))
    }

    /// The end of the grace period.
    fn grace_until_us(&self, grace_us: u64) -> u64 {
        self.since_us + grace_us + grace_us / CLOCK_RATE_ERROR + 1
    }
}
