//! What is known of each primary: whether it is the one it was, and whether enough time has passed since it was not.

use super::super::node::Node;
use crate::lease::{Sighting, Watch};
use crate::sync::{Lock, lock};
use std::collections::HashMap;
use tokio::sync::watch as channel;

/// What is known of each primary, by its name.
#[derive(Debug)]
pub(super) struct Watches {
    seen: Lock<HashMap<Box<str>, Sight>>,
    /// Counts the looks that ended, for those who wait for one.
    pub(super) looks: channel::Sender<u64>,
}

#[derive(Debug, Default)]
struct Sight {
    watch: Watch,
    /// How many connections to it there had been when it was looked at. A later one may lead to another server.
    dials: u64,
    looking: bool,
}

/// Whether a primary can be asked for units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It keeps what it acknowledged, as far as anybody knows.
    Yes,
    /// It may have forgotten what others hold, who have not had the time to say so.
    Quiet,
    /// It has to be looked at first.
    Unknown,
}

impl Watches {
    pub(super) fn new() -> Self {
        Self { seen: Lock::new(HashMap::new()), looks: channel::Sender::new(0) }
    }

    pub(super) fn trust(&self, node: &Node, now_us: u64, quiet_us: u64) -> Trust {
        let seen = lock(&self.seen);
        match seen.get(&node.name) {
            Some(sight)
                if sight.dials == node.dials() && sight.watch.is_fresh(now_us, quiet_us) =>
            {
                match now_us < sight.watch.quiet_until_us(quiet_us) {
                    true => Trust::Quiet,
                    false => Trust::Yes,
                }
            }
            _ => Trust::Unknown,
        }
    }

    /// Whether units can be spent that the primary granted; `None` as long as that takes another look.
    pub(super) fn vouch(
        &self,
        node: &Node,
        times_us: (u64, u64),
        age_us: u64,
        quiet_us: u64,
    ) -> Option<bool> {
        let seen = lock(&self.seen);
        let sight = seen.get(&node.name).filter(|sight| sight.dials == node.dials())?;
        sight.watch.vouches(times_us, age_us, quiet_us)
    }

    /// The same as `starts_look` for whoever needs a look whether or not one is due.
    pub(super) fn starts_another_look(&self, node: &Node) -> bool {
        let mut seen = lock(&self.seen);
        let sight = seen.entry(node.name.clone()).or_default();
        !std::mem::replace(&mut sight.looking, true)
    }

    /// Whether this caller is to look at the primary now; then it says so when it has.
    pub(super) fn starts_look(&self, node: &Node, now_us: u64, quiet_us: u64) -> bool {
        let mut seen = lock(&self.seen);
        let sight = seen.entry(node.name.clone()).or_default();
        let due = sight.dials != node.dials() || sight.watch.is_due(now_us, quiet_us);
        due && !std::mem::replace(&mut sight.looking, true)
    }

    /// Takes in a look that was begun at `sent_us`, when there had been so many connections. Answers whether the primary is another one than
    /// before, or new, so that everything held there has to be said at once.
    pub(super) fn looked(
        &self,
        node: &Node,
        (sent_us, now_us): (u64, u64),
        dials: u64,
        sighting: Option<&Sighting>,
    ) -> bool {
        let mut seen = lock(&self.seen);
        let sight = seen.entry(node.name.clone()).or_default();
        sight.looking = false;
        let changed = match sighting {
            Some(sighting) => {
                let first = !sight.watch.has_seen();
                sight.dials = dials;
                sight.watch.sighted(sent_us, now_us, sighting) || first
            }
            None => {
                sight.watch.lost();
                false
            }
        };
        drop(seen);
        self.looks.send_modify(|looks| *looks += 1);
        changed
    }

    /// Whoever looked is gone.
    pub(super) fn forget_looks(&self) {
        lock(&self.seen).values_mut().for_each(|sight| sight.looking = false);
    }
}
