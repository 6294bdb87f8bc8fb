//! Redis servers that replicate, simulated: whichever of them takes over, a marker that keeps its
//! age is on a server that has every write acknowledged under it.

use crate::rng::Rng;
use std::collections::BTreeSet;
use tollgate_store::lease::{
    MarkerOwner, MarkerReading, PrimaryMonitor, ReplicationStatus, SeenMarker, TakeoverWait, Trust,
};

const SERVERS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Write(u64),
    /// A marker, and since when it is trusted. A server that inherits it keeps that instant.
    Marker(MarkerOwner, u64),
}

#[derive(Clone, Debug)]
struct Server {
    run: u128,
    /// The server that it replicates.
    primary: Option<usize>,
    /// Whether it goes on with what its primary writes.
    joined: bool,
    history: u128,
    previous: u128,
    previous_end: i64,
    log: Vec<Entry>,
}

impl Server {
    fn status(&self) -> ReplicationStatus {
        ReplicationStatus {
            run: self.run,
            is_replica: self.primary.is_some(),
            history: self.history,
            previous: self.previous,
            previous_end: self.previous_end,
        }
    }

    fn end(&self) -> i64 {
        self.log.len() as i64 + 1
    }

    fn marker(&self) -> Option<(MarkerOwner, u64)> {
        self.log.iter().rev().find_map(|entry| match entry {
            Entry::Marker(owner, age) => Some((*owner, *age)),
            Entry::Write(_) => None,
        })
    }

    fn has(&self, write: u64) -> bool {
        self.log.contains(&Entry::Write(write))
    }
}

struct Replication {
    rng: Rng,
    servers: Vec<Server>,
    ids: u128,
    writes: u64,
    /// Writes that were acknowledged while a marker of this age was trusted.
    acknowledged: BTreeSet<(u64, u64)>,
    /// Of each server, the run and the marker that nodes last saw there.
    known: Vec<Option<(u128, u64)>>,
    /// Whether nodes looked at a server since it is primary, and believe what it acknowledges.
    trusted: Vec<bool>,
    proven: u64,
    refuted: u64,
}

impl Replication {
    fn new(rng: Rng) -> Self {
        let server = |n: usize| Server {
            run: n as u128 + 1,
            primary: (n > 0).then_some(0),
            joined: n > 0,
            history: 10,
            previous: 0,
            previous_end: -1,
            log: Vec::new(),
        };
        let servers = (0..SERVERS).map(server).collect();
        Self {
            rng,
            servers,
            ids: 10,
            writes: 0,
            acknowledged: BTreeSet::new(),
            known: vec![None; SERVERS],
            trusted: vec![false; SERVERS],
            proven: 0,
            refuted: 0,
        }
    }

    fn new_id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    fn any(&mut self) -> usize {
        self.rng.within(0, SERVERS as u64 - 1) as usize
    }

    fn step(&mut self) -> Result<(), String> {
        let (one, other) = (self.any(), self.any());
        let is_primary = self.servers[other].primary.is_none();
        match self.rng.within(0, 23) {
            0..5 => self.write(one),
            5..11 => self.replicate(one),
            11 => self.fail_over(one),
            12 => self.promote(one),
            13..16 if one != other && is_primary => self.follow(one, other),
            13..16 => {}
            16 => self.restart(one),
            17 => self.rename(one)?,
            _ => self.look(one)?,
        }
        Ok(())
    }

    /// A primary acknowledges a write.
    fn write(&mut self, at: usize) {
        let server = &mut self.servers[at];
        if server.primary.is_some() {
            return;
        }
        self.writes += 1;
        server.log.push(Entry::Write(self.writes));
        if let Some((_, age)) = server.marker().filter(|_| self.trusted[at]) {
            self.acknowledged.insert((age, self.writes));
        }
    }

    /// A replica joins its primary, or gets some of its writes.
    fn replicate(&mut self, at: usize) {
        let Some(from) = self.servers[at].primary else { return };
        let primary = self.servers[from].clone();
        let lost_backlog = self.rng.once_in(6);
        let replica = &mut self.servers[at];
        if primary.primary.is_some() {
            return;
        }
        if replica.joined && replica.history == primary.history {
            let have = replica.log.len();
            let some = self.rng.within(0, (primary.log.len() - have) as u64) as usize;
            replica.log.extend(&primary.log[have..have + some]);
            return;
        }
        replica.joined = true;
        let goes_on = replica.history == primary.history && replica.end() <= primary.end()
            || replica.history == primary.previous && replica.end() <= primary.previous_end;
        if !goes_on || lost_backlog {
            (replica.log, replica.history) = (primary.log.clone(), primary.history);
            (replica.previous, replica.previous_end) = (0, -1);
        } else if replica.history != primary.history {
            (replica.previous, replica.previous_end) = (replica.history, replica.end());
            replica.history = primary.history;
        }
    }

    /// `CLUSTER FAILOVER`: the replica has everything before it takes over.
    fn fail_over(&mut self, at: usize) {
        let Some(from) = self.servers[at].primary else { return };
        let primary = self.servers[from].clone();
        if primary.primary.is_some() || !self.servers[at].joined {
            return;
        }
        if self.servers[at].history == primary.history {
            self.servers[at].log = primary.log;
            self.promote(at);
            self.follow(from, at);
        }
    }

    /// A replica takes over with what it has: a crash, `CLUSTER FAILOVER TAKEOVER`, Sentinel. The
    /// old primary goes on until it is told.
    fn promote(&mut self, at: usize) {
        if self.servers[at].primary.is_none() {
            return;
        }
        let id = self.new_id();
        let server = &mut self.servers[at];
        (server.previous, server.previous_end) = (server.history, server.end());
        (server.history, server.primary, server.joined) = (id, None, false);
    }

    fn follow(&mut self, at: usize, primary: usize) {
        (self.servers[at].primary, self.servers[at].joined) = (Some(primary), false);
        self.trusted[at] = false;
    }

    /// A server starts again with an older dump, which has the id of its history.
    fn restart(&mut self, at: usize) {
        let (run, id) = (self.new_id(), self.new_id());
        self.trusted[at] = false;
        let kept = self.rng.within(0, self.servers[at].log.len() as u64) as usize;
        let server = &mut self.servers[at];
        server.log.truncate(kept);
        (server.run, server.joined) = (run, false);
        (server.previous, server.previous_end) = (0, -1);
        if server.primary.is_none() {
            (server.previous, server.previous_end) = (server.history, server.end());
            server.history = id;
        }
    }

    /// A primary without replicas takes a new id, an hour after the last one went. Nodes look much
    /// more often.
    fn rename(&mut self, at: usize) -> Result<(), String> {
        if self.servers[at].primary.is_none() {
            self.look(at)?;
            let id = self.new_id();
            let server = &mut self.servers[at];
            (server.history, server.previous, server.previous_end) = (id, 0, -1);
        }
        Ok(())
    }

    /// A node reads the marker of a primary, as the script has it.
    fn look(&mut self, at: usize) -> Result<(), String> {
        let new = self.servers[at].status();
        if new.is_replica {
            return Ok(());
        }
        let mut age = self.new_id() as u64;
        if let Some((owner, kept)) = self.servers[at].marker()
            && (owner.is_still(&new) || self.is_proven(&owner, kept, &new))
        {
            age = kept;
        }
        let server = &mut self.servers[at];
        let owner = MarkerOwner { run: server.run, history: server.history };
        if server.marker() != Some((owner, age)) {
            server.log.push(Entry::Marker(owner, age));
        }
        self.known[at] = Some((server.run, age));
        self.trusted[at] = true;
        let mut all = self.acknowledged.range((age, 0)..=(age, u64::MAX));
        match all.find(|(_, write)| !self.servers[at].has(*write)) {
            Some((_, write)) => Err(format!("server {at} lacks write {write} of marker {age}")),
            None => Ok(()),
        }
    }

    /// Whether the server that wrote the marker testifies for the one that has it now.
    fn is_proven(&mut self, owner: &MarkerOwner, age: u64, new: &ReplicationStatus) -> bool {
        let known = self.known.iter().position(|known| *known == Some((owner.run, age)));
        let Some(at) = known else { return false };
        let proof = owner.has_handed_over(new, &self.servers[at].status());
        self.proven += u64::from(proof == Some(true));
        self.refuted += u64::from(proof == Some(false));
        proof == Some(true)
    }
}

/// An old primary may restart from a dump that ends where the new one began.
#[test]
fn a_server_that_restarted_proves_nothing() {
    let owner = MarkerOwner { run: 1, history: 10 };
    let new =
        ReplicationStatus { run: 2, is_replica: false, history: 11, previous: 10, previous_end: 9 };
    let old = ReplicationStatus { run: 1, is_replica: true, ..new };
    assert_eq!(owner.has_handed_over(&new, &old), Some(true));
    let restarted = ReplicationStatus { run: 3, ..old };
    assert_eq!(owner.has_handed_over(&new, &restarted), Some(false));
    let demoted = ReplicationStatus { history: 10, previous: 0, previous_end: -1, ..old };
    assert_eq!(owner.has_handed_over(&new, &demoted), None, "it has yet to join");
    let ahead = ReplicationStatus { previous: 0, previous_end: -1, ..old };
    assert_eq!(owner.has_handed_over(&new, &ahead), Some(false), "it got a full copy");
}

/// Two failovers follow each other while a node waits for a proof. The second server may lack what
/// the first one acknowledged, so its grace period begins when the node first sees it.
#[test]
fn the_wait_for_one_server_is_no_part_of_the_next_ones_grace_period() {
    let (mut wait, mut monitor, grace_us) =
        (TakeoverWait::default(), PrimaryMonitor::default(), 1_000);
    assert_eq!(wait.waited_us(("marker", "first"), 10_000), 0);
    assert_eq!(wait.waited_us(("marker", "first"), 10_400), 400);
    assert_eq!(wait.waited_us(("marker", "second"), 10_900), 0, "nothing was known of it before");
    let age_us = wait.waited_us(("marker", "second"), 10_950);
    monitor.record_marker(10_950, 10_960, &MarkerReading { run: 2, age_us, replaced: None });
    assert_eq!(monitor.trust(11_100, grace_us), Trust::GracePeriod, "others have yet to report");
    assert_eq!(monitor.trust(11_400, grace_us), Trust::GracePeriod, "others have yet to report");
    monitor.record_marker(11_960, 11_960, &MarkerReading { run: 2, age_us: 1_010, replaced: None });
    assert_eq!(monitor.trust(11_960, grace_us), Trust::Trusted);
    assert_eq!(wait.waited_us(("another", "second"), 11_970), 0);
}

/// The rule that lets a marker keep its age, against every write that was acknowledged under it.
#[test]
fn no_server_inherits_a_marker_without_every_write_acknowledged_under_it() {
    let (mut proven, mut refuted) = (0, 0);
    for seed in 0..60_000 {
        let mut world = Replication::new(Rng::new(seed));
        for step in 0..40 {
            if let Err(why) = world.step() {
                panic!("seed {seed}, step {step}: {why}");
            }
        }
        (proven, refuted) = (proven + world.proven, refuted + world.refuted);
    }
    assert!(proven > 1_000 && refuted > 1_000, "{proven} proven, {refuted} refuted");
}

/// The slot of the marker was moving, so nothing came with the decision.
#[test]
fn a_decision_without_a_marker_counts_after_a_later_reading() {
    let (mut monitor, grace_us) = (PrimaryMonitor::default(), 1_000);
    let marker = |run| MarkerReading { run, age_us: 5_000, replaced: None };
    monitor.record_marker(10_000, 10_010, &marker(1));
    let valid = |monitor: &PrimaryMonitor| {
        monitor.is_decision_valid((10_100, 10_200), SeenMarker::NotRead, true, grace_us)
    };
    assert_eq!(valid(&monitor), None, "it may have been emptied since");
    monitor.record_marker(10_300, 10_310, &marker(1));
    assert_eq!(valid(&monitor), Some(true));
    monitor.record_marker(10_400, 10_410, &MarkerReading { age_us: 100, ..marker(2) });
    assert_eq!(valid(&monitor), Some(false), "it was emptied");
}

/// A replica that was promoted shows the marker that the node knows, and may lack the last writes.
#[test]
fn a_decision_over_a_new_connection_counts_after_a_later_reading() {
    let (mut monitor, grace_us) = (PrimaryMonitor::default(), 1_000);
    let marker = |run| MarkerReading { run, age_us: 5_000, replaced: None };
    monitor.record_marker(10_000, 10_010, &marker(1));
    let valid = |monitor: &PrimaryMonitor| {
        monitor.is_decision_valid((10_100, 10_200), SeenMarker::Id(1), false, grace_us)
    };
    assert_eq!(valid(&monitor), None, "another server may have decided");
    monitor.connection_lost();
    assert_eq!(valid(&monitor), None, "nothing was read since");
    monitor.record_marker(10_300, 10_310, &marker(1));
    assert_eq!(valid(&monitor), Some(true));
}
