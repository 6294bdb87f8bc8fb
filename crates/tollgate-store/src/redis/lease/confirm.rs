//! Decisions of the store about limits that others may hold units of.

use super::super::servers::Servers;
use super::watches::Trust;
use super::{LeaseCommand, LeasedLimit, Leases};
use crate::{Answer, GracePolicy, Origin, StoreError, StoreErrorKind};
use std::sync::Arc;
use tollgate_core::Outcome;

/// When whoever was refused may ask again, as where the store cannot be asked.
const RETRY_AFTER_US: u64 = 1_000_000;
/// Looks that are waited for: one may have been begun before a connection was lost.
const CHECKS_MAX: usize = 3;

impl Leases {
    /// Waits until it is known whether the primary of `slot` is the one it was.
    ///
    /// Where it is not, what others hold may be missing in it, so that for a while nothing is
    /// decided by it either.
    pub(in crate::redis) async fn confirm_primary(
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
    pub(super) async fn verify_grant(
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
    pub(in crate::redis) fn grace_answer(&self) -> Result<Answer, StoreError> {
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
