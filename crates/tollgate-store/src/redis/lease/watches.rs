//! What is known of each primary: whether it is the one it was, and whether enough time has passed
//! since it was not.

use super::super::node::Node;
use crate::lease::{MarkerReading, PrimaryMonitor};
use crate::sync::{Lock, lock};
use std::collections::HashMap;
use tokio::sync::watch as channel;

/// What is known of each primary, by its name.
#[derive(Debug)]
pub(super) struct PrimaryMonitors {
    primaries: Lock<HashMap<Box<str>, MonitoredPrimary>>,
    /// Counts the looks that ended, for those who wait for one.
    pub(super) checks_done: channel::Sender<u64>,
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
pub(super) enum Trust {
    /// It keeps what it acknowledged, as far as anybody knows.
    Trusted,
    /// It may have forgotten what others hold, who have not had the time to say so.
    GracePeriod,
    /// It has to be looked at first.
    Unknown,
}

impl PrimaryMonitors {
    pub(super) fn new() -> Self {
        Self { primaries: Lock::new(HashMap::new()), checks_done: channel::Sender::new(0) }
    }

    pub(super) fn trust(&self, node: &Node, now_us: u64, quiet_us: u64) -> Trust {
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
    pub(super) fn is_grant_valid(
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
    pub(super) fn begin_forced_check(&self, node: &Node) -> bool {
        let mut seen = lock(&self.primaries);
        let sight = seen.entry(node.name.clone()).or_default();
        !std::mem::replace(&mut sight.is_checking, true)
    }

    /// Whether this caller is to look at the primary now; then it says so when it has.
    pub(super) fn begin_due_check(&self, node: &Node, now_us: u64, quiet_us: u64) -> bool {
        let mut seen = lock(&self.primaries);
        let sight = seen.entry(node.name.clone()).or_default();
        let due = sight.dials != node.connects() || sight.monitor.is_check_due(now_us, quiet_us);
        due && !std::mem::replace(&mut sight.is_checking, true)
    }

    /// Takes in a look that was begun at `sent_us`, when there had been so many connections.
    /// Answers whether the primary is another one than before, or new, so that everything held
    /// there has to be said at once.
    pub(super) fn finish_check(
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
    pub(super) fn forget_checks(&self) {
        lock(&self.primaries).values_mut().for_each(|sight| sight.is_checking = false);
    }
}
