//! Decisions of the store about limits that others may hold units of.

use super::super::servers::Servers;
use super::watches::Trust;
use super::{Leased, Leases, Order};
use crate::{Answer, Origin, StoreError, StoreErrorKind, WhileQuiet};
use std::sync::Arc;
use tollgate_core::Outcome;

/// When whoever was refused may ask again, as where the store cannot be asked.
const RETRY_AFTER_US: u64 = 1_000_000;
/// Looks that are waited for: one may have been begun before a connection was lost.
const LOOKS: usize = 3;

impl Leases {
    /// Waits until it is known whether the primary of `slot` is the one it was.
    ///
    /// Where it is not, what others hold may be missing in it, so that for a while nothing is decided by it either.
    pub(in crate::redis) async fn confirm(
        &self,
        servers: &Servers,
        slot: u16,
        quiet_us: u64,
    ) -> Result<bool, StoreError> {
        for _ in 0..LOOKS {
            let node = servers.home(slot).await?;
            let mut looks = self.watches.looks.subscribe();
            match self.watches.trust(&node, self.clock.now_us(), quiet_us) {
                Trust::Yes => return Ok(true),
                Trust::Quiet => return Ok(false),
                Trust::Unknown => node.breaker.check()?,
            }
            self.order(Order::Look);
            // The sender lives as long as this.
            let _ = looks.changed().await;
        }
        Err(StoreError::new(StoreErrorKind::Unreachable, ""))
    }

    /// Whether units can be spent that came at `times_us.1` and were asked for at `times_us.0`: not those of a book that was begun after the
    /// store had forgotten another one.
    pub(super) async fn vouch(
        &self,
        servers: &Arc<Servers>,
        slot: u16,
        times_us: (u64, u64),
        (age_us, quiet_us): (u64, u64),
    ) -> bool {
        for _ in 0..LOOKS {
            let Ok(node) = servers.home(slot).await else { return false };
            let mut looks = self.watches.looks.subscribe();
            if let Some(sure) = self.watches.vouch(&node, times_us, age_us, quiet_us) {
                return sure;
            }
            // Done here rather than ordered: the task may have no room for another call until this one has ended.
            if self.watches.starts_another_look(&node) {
                self.look_at(servers, node).await;
            } else {
                let _ = looks.changed().await;
            }
        }
        false
    }
}

impl Leased {
    /// What the limit says while nobody knows what is left of it.
    pub(in crate::redis) fn while_quiet(&self) -> Result<Answer, StoreError> {
        let outcome = match self.while_quiet {
            WhileQuiet::Admit => Outcome::unasked(self.capacity),
            WhileQuiet::Refuse => Outcome::withheld(self.capacity, RETRY_AFTER_US),
            WhileQuiet::Fail => {
                let why = "it may have forgotten what nodes hold, and they have a moment to say so";
                return Err(StoreError::new(StoreErrorKind::Busy, why));
            }
        };
        Ok(Answer { outcome, blocked: false, receipt: None, origin: Origin::Quiet })
    }
}
