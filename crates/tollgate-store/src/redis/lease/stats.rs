//! Counters of leases.

/// Counters of leases since the store was opened, over all leased limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Units that the store granted.
    pub granted: u64,
    /// Units that requests charged to leases.
    pub spent: u64,
    /// Units returned to the store.
    pub returned: u64,
    /// Units neither spent nor returned: their window ended, or the store lost them.
    pub stranded: u64,
    /// Losses of acknowledged writes in the store.
    pub rollbacks: u64,
    /// Grace periods of primaries that may have lost writes.
    pub grace_periods: u64,
    /// Whether a grace period is running.
    pub in_grace_period: bool,
    /// Calls that asked for units, returned units or re-asserted them.
    pub calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Charges of admitted requests that were taken from a lease.
    pub local: u64,
    /// Charges of leased limits that the store decided.
    pub direct: u64,
    /// Charges refused from a recent refusal of the store, or in a grace period.
    pub refused: u64,
    /// Current leases.
    pub leases: u64,
    /// Units in leases, including those being returned.
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
