//! Decisions of the store about limits that others may hold units of.

use super::super::servers::Servers;
use super::watches::Trust;
use super::{Leases, Order};
use crate::{StoreError, StoreErrorKind};

/// Looks that are waited for: one may have been begun before a connection was lost.
const LOOKS: usize = 3;

impl Leases {
    /// Waits until it is known that the primary of `slot` is the one it was.
    ///
    /// Where it is not, what others hold may be missing in it, so that for a while nothing is decided by it either.
    pub(in crate::redis) async fn confirm(
        &self,
        servers: &Servers,
        slot: u16,
        quiet_us: u64,
    ) -> Result<(), StoreError> {
        for _ in 0..LOOKS {
            let node = servers.home(slot).await?;
            let mut looks = self.watches.looks.subscribe();
            match self.watches.trust(&node, self.clock.now_us(), quiet_us) {
                Trust::Yes => return Ok(()),
                Trust::Quiet => return Err(quiet()),
                Trust::Unknown => node.breaker.check()?,
            }
            self.order(Order::Look);
            // The sender lives as long as this.
            let _ = looks.changed().await;
        }
        Err(StoreError::new(StoreErrorKind::Unreachable, ""))
    }
}

pub(super) fn quiet() -> StoreError {
    StoreError::new(
        StoreErrorKind::Busy,
        "it may have forgotten what nodes hold, and they have a moment to say so",
    )
}
