//! The grants of a lease: units that were granted together expire together.

use super::Lease;

/// Limit of separate grants. More arrive only while most are nearly spent; then the two oldest are
/// merged.
pub(super) const GRANTS_MAX: usize = 4;

/// Units that were granted together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grant {
    pub(super) units: u64,
    pub(super) expires_us: u64,
    /// The time of the grant, by the store's clock.
    pub(super) granted_us: u64,
}

impl Lease {
    /// Returns the units of expired grants.
    pub(super) fn expire(&mut self, now_us: u64) {
        while self.grant_count > 0 && now_us >= self.grants[0].expires_us {
            let grant = self.pop_oldest_grant();
            self.queue_return(grant.units, grant.granted_us);
        }
    }

    /// Queues units for return. They leave the balance before the store learns of the return (I5).
    pub(super) fn queue_return(&mut self, units: u64, granted_us: u64) {
        if units > 0 {
            self.returned += units;
            self.return_at_us = self.return_at_us.min(granted_us);
        }
    }

    pub(super) fn take_oldest_first(&mut self, mut units: u64) {
        while self.grant_count > 0 {
            let grant = &mut self.grants[0];
            let taken = units.min(grant.units);
            grant.units -= taken;
            units -= taken;
            if grant.units > 0 {
                return;
            }
            self.pop_oldest_grant();
        }
    }

    pub(super) fn add_grant(&mut self, grant: Grant) {
        if self.grant_count == GRANTS_MAX {
            let oldest = self.pop_oldest_grant();
            self.grants[0].units += oldest.units;
            self.grants[0].expires_us = self.grants[0].expires_us.min(oldest.expires_us);
            self.grants[0].granted_us = self.grants[0].granted_us.min(oldest.granted_us);
        }
        // Sorted by expiry.
        let index = self.grants[..self.grant_count]
            .partition_point(|one| one.expires_us <= grant.expires_us);
        self.grants[index..=self.grant_count].rotate_right(1);
        self.grants[index] = grant;
        self.grant_count += 1;
    }

    pub(super) fn pop_oldest_grant(&mut self) -> Grant {
        let grant = self.grants[0];
        self.grants[..self.grant_count].rotate_left(1);
        self.grant_count -= 1;
        grant
    }
}
