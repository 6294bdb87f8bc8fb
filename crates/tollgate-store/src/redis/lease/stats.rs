//! Counters of leases.

/// Counters of leases since the store was opened, over all leased limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Units that the store granted.
    pub granted: u64,
    /// Units that requests took from leases.
    pub spent: u64,
    /// Units returned to the store.
    pub returned: u64,
    /// Units neither spent nor returned: their window had ended, or the store had forgotten them.
    pub stranded: u64,
    /// How often the store had forgotten acknowledged writes.
    pub rollbacks: u64,
    /// How often a primary was in a grace period, since it may have lost writes.
    pub grace_periods: u64,
    /// Whether one is at the moment.
    pub in_grace_period: bool,
    /// Calls that asked for units, returned units or re-asserted them.
    pub calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Charges taken from a lease, for requests that were admitted.
    pub local: u64,
    /// Charges of leased limits that the store decided.
    pub direct: u64,
    /// Charges refused because nothing was left in the store lately, or in a grace period.
    pub refused: u64,
    /// Leases at the moment.
    pub leases: u64,
    /// Units in leases at the moment, and those on their way back.
    pub held: u64,
}

impl LeaseStats {
    pub(super) fn add(&mut self, other: &Self) {
        self.granted += other.granted;
        self.spent += other.spent;
        self.returned += other.returned;
        self.stranded += other.stranded;
        self.rollbacks += other.rollbacks;
        self.calls += other.calls;
        self.failures += other.failures;
        self.local += other.local;
        self.direct += other.direct;
        self.refused += other.refused;
    }
}
