//! What is known of each primary: whether it is the one it was, and whether enough time has passed
//! since it was not.

use super::{LeaseCommand, LeasedLimit, Leases};
use crate::lease::{MarkerReading, PrimaryMonitor};
use crate::redis::client::Servers;
use crate::redis::client::node::Node;
use crate::sync::{Lock, lock};
use crate::{Answer, GracePolicy, Origin, StoreError, StoreErrorKind};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch as channel;
use tollgate_core::Outcome;

/// What is known of each primary, by its name.
#[derive(Debug)]
pub(crate) struct PrimaryMonitors {
    primaries: Lock<HashMap<Box<str>, MonitoredPrimary>>,
    /// Counts the looks that ended, for those who wait for one.
    pub(crate) checks_done: channel::Sender<u64>,
}

#[derive(Debug, Default)]
struct MonitoredPrimary {
    monitor: PrimaryMonitor,
    /// How many connections to it there had been when it was looked at. A later one may lead to
    /// another server.
    dials: u64,
    is_checking: bool,
}

/// Whether a primary can be asked for units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It keeps what it acknowledged, as far as anybody knows.
    Trusted,
    /// It may have forgotten what others hold, who have not had the time to say so.
    GracePeriod,
    /// It has to be looked at first.
    Unknown,
}

impl PrimaryMonitors {
    pub(crate) fn new() -> Self {
        Self { primaries: Lock::new(HashMap::new()), checks_done: channel::Sender::new(0) }
    }

    pub(crate) fn trust(&self, node: &Node, now_us: u64, quiet_us: u64) -> Trust {
        let seen = lock(&self.primaries);
        match seen.get(&node.name) {
            Some(sight)
                if sight.dials == node.connects() && sight.monitor.is_fresh(now_us, quiet_us) =>
            {
                match now_us < sight.monitor.quiet_until_us(quiet_us) {
                    true => Trust::GracePeriod,
                    false => Trust::Trusted,
                }
            }
            _ => Trust::Unknown,
        }
    }

    /// Whether units can be spent that the primary granted; `None` as long as that takes another
    /// look.
    pub(crate) fn is_grant_valid(
        &self,
        node: &Node,
        times_us: (u64, u64),
        age_us: u64,
        quiet_us: u64,
    ) -> Option<bool> {
        let seen = lock(&self.primaries);
        let sight = seen.get(&node.name).filter(|sight| sight.dials == node.connects())?;
        sight.monitor.is_grant_valid(times_us, age_us, quiet_us)
    }

    /// The same as `starts_look` for whoever needs a look whether or not one is due.
    pub(crate) fn begin_forced_check(&self, node: &Node) -> bool {
        let mut seen = lock(&self.primaries);
        let sight = seen.entry(node.name.clone()).or_default();
        !std::mem::replace(&mut sight.is_checking, true)
    }

    /// Whether this caller is to look at the primary now; then it says so when it has.
    pub(crate) fn begin_due_check(&self, node: &Node, now_us: u64, quiet_us: u64) -> bool {
        let mut seen = lock(&self.primaries);
        let sight = seen.entry(node.name.clone()).or_default();
        let due = sight.dials != node.connects() || sight.monitor.is_check_due(now_us, quiet_us);
        due && !std::mem::replace(&mut sight.is_checking, true)
    }

    /// Takes in a look that was begun at `sent_us`, when there had been so many connections.
    /// Answers whether the primary is another one than before, or new, so that everything held
    /// there has to be said at once.
    pub(crate) fn finish_check(
        &self,
        node: &Node,
        (sent_us, now_us): (u64, u64),
        dials: u64,
        sighting: Option<&MarkerReading>,
    ) -> bool {
        let mut seen = lock(&self.primaries);
        let sight = seen.entry(node.name.clone()).or_default();
        sight.is_checking = false;
        let changed = match sighting {
            Some(sighting) => {
                let first = !sight.monitor.has_marker();
                sight.dials = dials;
                sight.monitor.record_marker(sent_us, now_us, sighting) || first
            }
            None => {
                sight.monitor.connection_lost();
                false
            }
        };
        drop(seen);
        self.checks_done.send_modify(|looks| *looks += 1);
        changed
    }

    /// Whoever looked is gone.
    pub(crate) fn forget_checks(&self) {
        lock(&self.primaries).values_mut().for_each(|sight| sight.is_checking = false);
    }
}

/// When whoever was refused may ask again, as where the store cannot be asked.
const RETRY_AFTER_US: u64 = 1_000_000;
/// Looks that are waited for: one may have been begun before a connection was lost.
const CHECKS_MAX: usize = 3;

impl Leases {
    /// Waits until it is known whether the primary of `slot` is the one it was.
    ///
    /// Where it is not, what others hold may be missing in it, so that for a while nothing is
    /// decided by it either.
    pub(crate) async fn confirm_primary(
        &self,
        servers: &Servers,
        slot: u16,
        quiet_us: u64,
    ) -> Result<bool, StoreError> {
        for _ in 0..CHECKS_MAX {
            let node = servers.node_for_slot(slot).await?;
            let mut looks = self.monitors.checks_done.subscribe();
            match self.monitors.trust(&node, self.clock.now_us(), quiet_us) {
                Trust::Trusted => return Ok(true),
                Trust::GracePeriod => return Ok(false),
                Trust::Unknown => node.breaker.check()?,
            }
            self.send_command(LeaseCommand::CheckPrimaries);
            // The sender lives as long as this.
            let _ = looks.changed().await;
        }
        Err(self.last_error())
    }

    /// Whether units can be spent that came at `times_us.1` and were asked for at `times_us.0`: not
    /// those of a book that was begun after the store had forgotten another one.
    pub(crate) async fn verify_grant(
        &self,
        servers: &Arc<Servers>,
        slot: u16,
        times_us: (u64, u64),
        (age_us, quiet_us): (u64, u64),
    ) -> bool {
        for _ in 0..CHECKS_MAX {
            let Ok(node) = servers.node_for_slot(slot).await else { return false };
            let mut looks = self.monitors.checks_done.subscribe();
            if let Some(sure) = self.monitors.is_grant_valid(&node, times_us, age_us, quiet_us) {
                return sure;
            }
            // Done here rather than ordered: the task may have no room for another call until this
            // one has ended.
            if self.monitors.begin_forced_check(&node) {
                self.check_primary(servers, node).await;
            } else {
                let _ = looks.changed().await;
            }
        }
        false
    }
}

impl LeasedLimit {
    /// What the limit says while nobody knows what is left of it.
    pub(crate) fn grace_answer(&self) -> Result<Answer, StoreError> {
        let outcome = match self.grace_policy {
            GracePolicy::Admit => Outcome::admitting(self.capacity),
            GracePolicy::Refuse => Outcome::refusing(self.capacity, RETRY_AFTER_US),
            GracePolicy::Fail => {
                let why = "it may have forgotten what nodes hold, and they have a moment to say so";
                return Err(StoreError::new(StoreErrorKind::Busy, why));
            }
        };
        Ok(Answer { outcome, blocked: false, receipt: None, origin: Origin::GracePeriod })
    }
}
