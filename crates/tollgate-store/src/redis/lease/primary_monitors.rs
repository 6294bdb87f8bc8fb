//! Monitors of the primaries: whether each kept its acknowledged writes, or is in a grace period.

use super::{LeaseCommand, LeasedLimit, Leases};
use crate::lease::{MarkerReading, PrimaryMonitor, SeenMarker, Trust};
use crate::redis::client::Servers;
use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::server::Server;
use crate::sync::{Lock, lock};
use crate::{Answer, GracePolicy, Origin, StoreError};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch as channel;
use tollgate_core::Outcome;

/// The monitor of each primary, by the server's name.
#[derive(Debug)]
pub(crate) struct PrimaryMonitors {
    primaries: Lock<HashMap<Box<str>, MonitoredPrimary>>,
    /// The number of finished checks, for requests that wait for one.
    pub(crate) checks_done: channel::Sender<u64>,
}

/// The marker of a primary, as a check read it.
#[derive(Debug)]
pub(super) struct PrimaryReading {
    /// The request time of the reading.
    pub(super) sent_us: u64,
    /// The server's number of connections.
    pub(super) dials: u64,
    /// The name of the marker's key.
    pub(super) key: Vec<u8>,
    pub(super) marker: MarkerReading,
}

#[derive(Debug, Default)]
struct MonitoredPrimary {
    monitor: PrimaryMonitor,
    /// The name of the marker's key.
    marker_key: Option<Vec<u8>>,
    /// The keys of spare markers, with the time of the last reading.
    spares: HashMap<Vec<u8>, u64>,
    /// The server's `connects` at the last check. A later connection may reach another server.
    dials: u64,
    is_checking: bool,
    /// Whether the check in flight found the marker of another server.
    is_taken_over: bool,
    /// Whether the check in flight found that the slot of the marker moved.
    is_marker_moving: bool,
    /// The address of the server, if it is fixed.
    address: Option<ServerAddress>,
    in_grace_period: bool,
    grace_periods: u64,
}

impl PrimaryMonitors {
    pub(crate) fn new() -> Self {
        Self { primaries: Lock::new(HashMap::new()), checks_done: channel::Sender::new(0) }
    }

    pub(crate) fn trust(&self, server: &Server, now_us: u64, grace_us: u64) -> Trust {
        let primaries = lock(&self.primaries);
        let Some(primary) = primaries.get(&server.name) else { return Trust::Unknown };
        let is_checked = !primary.is_taken_over && primary.dials == server.connects();
        let trust =
            if is_checked { primary.monitor.trust(now_us, grace_us) } else { Trust::Unknown };
        match trust {
            Trust::Unknown if primary.is_taken_over || primary.is_marker_moving => Trust::TakenOver,
            trust => trust,
        }
    }

    /// The address of the primary with this marker, and the age of the marker.
    pub(super) fn primary_with(&self, marker: u128, now_us: u64) -> Option<(ServerAddress, u64)> {
        let primaries = lock(&self.primaries);
        primaries.values().find_map(|primary| {
            let age_us = primary.monitor.marker_age_us(marker, now_us)?;
            Some((primary.address.clone()?, age_us))
        })
    }

    /// Records that a check found the marker of another server, so that requests need not wait for
    /// the end of the check.
    pub(super) fn begin_takeover(&self, server: &Server) {
        if let Some(primary) = lock(&self.primaries).get_mut(&server.name) {
            primary.is_taken_over = true;
        }
        self.checks_done.send_modify(|checks| *checks += 1);
    }

    /// Records that the slot of the marker moved, and the check looks for another one. Until the
    /// last reading is too old, the primary stays trusted.
    pub(super) fn marker_moved(&self, server: &Server) {
        let mut primaries = lock(&self.primaries);
        let Some(primary) = primaries.get_mut(&server.name) else { return };
        if !std::mem::replace(&mut primary.is_marker_moving, true) {
            drop(primaries);
            self.checks_done.send_modify(|checks| *checks += 1);
        }
    }

    /// Whether the marker of the primary was in another key before.
    pub(super) fn has_marker_moved(&self, server: &Server, key: &[u8]) -> bool {
        let primaries = lock(&self.primaries);
        let before = primaries.get(&server.name).and_then(|primary| primary.marker_key.as_ref());
        before.is_some_and(|before| before != key)
    }

    /// Whether the spare marker must be read, so that it exists when it is needed.
    pub(super) fn is_spare_due(&self, server: &Server, key: &[u8], now_us: u64) -> bool {
        let primaries = lock(&self.primaries);
        let read_us = primaries.get(&server.name).and_then(|primary| primary.spares.get(key));
        read_us.is_none_or(|at_us| now_us >= at_us + SPARE_PERIOD_US)
    }

    pub(super) fn record_spare(&self, server: &Server, key: Vec<u8>, now_us: u64) {
        if let Some(primary) = lock(&self.primaries).get_mut(&server.name) {
            primary.spares.retain(|_, at_us| now_us < *at_us + SPARE_PERIOD_US);
            primary.spares.insert(key, now_us);
        }
    }

    /// Whether units granted by the primary may be spent; `None` if another check is needed.
    pub(crate) fn is_grant_valid(
        &self,
        server: &Server,
        times_us: (u64, u64),
        age_us: u64,
        grace_us: u64,
    ) -> Option<bool> {
        let primaries = lock(&self.primaries);
        let primary =
            primaries.get(&server.name).filter(|primary| primary.dials == server.connects())?;
        primary.monitor.is_grant_valid(times_us, age_us, grace_us)
    }

    /// Whether a decision counts if the primary showed `marker` after it; `None` if another check
    /// is needed. Connections up to the last check reached the checked server.
    pub(crate) fn is_decision_valid(
        &self,
        server: &Server,
        times_us: (u64, u64),
        marker: SeenMarker,
        connection: u64,
        grace_us: u64,
    ) -> Option<bool> {
        let primaries = lock(&self.primaries);
        let primary = primaries.get(&server.name)?;
        let is_known = connection <= primary.dials;
        primary.monitor.is_decision_valid(times_us, marker, is_known, grace_us)
    }

    /// Makes the next request wait for a check.
    pub(crate) fn distrust(&self, server: &Server) {
        if let Some(primary) = lock(&self.primaries).get_mut(&server.name) {
            primary.monitor.connection_lost();
        }
    }

    /// Begins a check that is not due. Returns whether the caller must run it.
    pub(crate) fn begin_forced_check(&self, server: &Server) -> bool {
        let mut primaries = lock(&self.primaries);
        let primary = primaries.entry(server.name.clone()).or_default();
        !std::mem::replace(&mut primary.is_checking, true)
    }

    /// Begins a check if one is due. Returns whether the caller must run it.
    pub(crate) fn begin_due_check(&self, server: &Server, now_us: u64, grace_us: u64) -> bool {
        let mut primaries = lock(&self.primaries);
        let primary = primaries.entry(server.name.clone()).or_default();
        let due =
            primary.dials != server.connects() || primary.monitor.is_check_due(now_us, grace_us);
        due && !std::mem::replace(&mut primary.is_checking, true)
    }

    /// Records a check. Returns whether the primary is new or changed, so that its leases must be
    /// re-asserted.
    pub(super) fn finish_check(
        &self,
        server: &Server,
        now_us: u64,
        reading: Option<PrimaryReading>,
    ) -> bool {
        let mut primaries = lock(&self.primaries);
        let primary = primaries.entry(server.name.clone()).or_default();
        primary.is_checking = false;
        (primary.is_taken_over, primary.is_marker_moving) = (false, false);
        primary.address = server.address().cloned();
        let changed = match reading {
            Some(PrimaryReading { sent_us, dials, key, marker }) => {
                let first = !primary.monitor.has_marker();
                primary.dials = dials;
                primary.marker_key = Some(key);
                primary.monitor.record_marker(sent_us, now_us, &marker) || first
            }
            None => {
                primary.monitor.connection_lost();
                false
            }
        };
        drop(primaries);
        self.checks_done.send_modify(|checks| *checks += 1);
        changed
    }

    /// Whether a grace period of the primary began (`Some(true)`) or ended since the last call.
    pub(crate) fn update_grace_period(
        &self,
        server: &Server,
        now_us: u64,
        grace_us: u64,
    ) -> Option<bool> {
        let mut primaries = lock(&self.primaries);
        let primary = primaries.get_mut(&server.name)?;
        let in_grace_period = match primary.monitor.trust(now_us, grace_us) {
            Trust::Unknown | Trust::TakenOver => return None,
            trust => trust == Trust::GracePeriod,
        };
        if std::mem::replace(&mut primary.in_grace_period, in_grace_period) == in_grace_period {
            return None;
        }
        primary.grace_periods += u64::from(in_grace_period);
        Some(in_grace_period)
    }

    /// Grace periods so far, over all primaries, and whether one is running.
    pub(crate) fn grace_periods(&self) -> (u64, bool) {
        let primaries = lock(&self.primaries);
        let count = primaries.values().map(|primary| primary.grace_periods).sum();
        (count, primaries.values().any(|primary| primary.in_grace_period))
    }

    /// Drops checks in flight, because their task panicked.
    pub(crate) fn forget_checks(&self) {
        for primary in lock(&self.primaries).values_mut() {
            (primary.is_checking, primary.is_taken_over) = (false, false);
            primary.is_marker_moving = false;
        }
    }
}

/// The interval of readings of spare markers, much shorter than their TTL.
const SPARE_PERIOD_US: u64 = 3_600_000_000;
/// The retry time of a refusal in a grace period.
const RETRY_AFTER_US: u64 = 1_000_000;
/// Limit of checks to wait for. The first may have begun before a connection was lost.
const CHECKS_MAX: usize = 3;

impl Leases {
    /// Waits until the primary of `slot` is checked. `false` in a grace period: its state may lack
    /// units of holders, so it cannot decide. A limit that the store decides even then does not
    /// wait for the end of a takeover.
    pub(crate) async fn confirm_primary(
        &self,
        servers: &Servers,
        slot: u16,
        leased: &LeasedLimit,
    ) -> Result<bool, StoreError> {
        let mut checks_left = CHECKS_MAX;
        while checks_left > 0 {
            let server = servers.server_for_slot(slot).await?;
            let mut checks = self.monitors.checks_done.subscribe();
            match self.monitors.trust(&server, self.clock.now_us(), leased.terms.grace_us) {
                Trust::Trusted => return Ok(true),
                Trust::GracePeriod => return Ok(false),
                Trust::TakenOver if leased.grace_policy == GracePolicy::Decide => return Ok(false),
                // The check ends soon, and requests have deadlines.
                Trust::TakenOver => checks_left += 1,
                Trust::Unknown => server.breaker.check()?,
            }
            checks_left -= 1;
            self.send_command(LeaseCommand::CheckPrimaries);
            // The sender lives as long as `self`.
            let _ = checks.changed().await;
        }
        Err(self.last_error())
    }

    /// Whether a grant requested at `times_us.0` and received at `times_us.1` may be spent. It may
    /// not if its ledger began after the store had lost another one.
    pub(crate) async fn verify_grant(
        &self,
        servers: &Arc<Servers>,
        slot: u16,
        times_us: (u64, u64),
        (age_us, grace_us): (u64, u64),
    ) -> bool {
        let Ok(server) = servers.server_for_slot(slot).await else { return false };
        let is_valid = || self.monitors.is_grant_valid(&server, times_us, age_us, grace_us);
        self.check_until(servers, &server, is_valid).await == Some(true)
    }

    /// Checks a primary until `is_valid` returns a result.
    pub(super) async fn check_until(
        &self,
        servers: &Arc<Servers>,
        server: &Arc<Server>,
        is_valid: impl Fn() -> Option<bool>,
    ) -> Option<bool> {
        for _ in 0..CHECKS_MAX {
            let mut checks = self.monitors.checks_done.subscribe();
            if let Some(is_valid) = is_valid() {
                return Some(is_valid);
            }
            // Checked here and not by command: the renewal task may have no room for another call
            // until this one ends.
            if self.monitors.begin_forced_check(server) {
                self.check_primary(servers, Arc::clone(server)).await;
            } else {
                let _ = checks.changed().await;
            }
        }
        is_valid()
    }
}

impl LeasedLimit {
    /// The answer of the limit in a grace period; `None` if the store decides.
    pub(crate) fn grace_answer(&self) -> Option<Answer> {
        let outcome = match self.grace_policy {
            GracePolicy::Decide => return None,
            GracePolicy::Refuse => Outcome::refusing(self.capacity, RETRY_AFTER_US),
        };
        Some(Answer { outcome, blocked: false, receipt: None, origin: Origin::GracePeriod })
    }
}
