//! What leases came to, since the store was opened.

/// What leases came to, since the store was opened. Units are those of all leased limits together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Units that the store granted.
    pub granted: u64,
    /// Units that requests took from leases.
    pub spent: u64,
    /// Units that the store knows to be returned.
    pub returned: u64,
    /// Units that nobody could spend any more, nor return: their window had ended, or the store had
    /// forgotten them.
    pub stranded: u64,
    /// How often the store turned out to have forgotten something.
    pub rollbacks: u64,
    /// Calls about leases: to get more, to return, to say what is held.
    pub calls: u64,
    /// Of them those without an answer.
    pub failures: u64,
    /// Charges taken from a lease, for requests that were admitted.
    pub local: u64,
    /// Charges of leased limits that the store decided.
    pub direct: u64,
    /// Charges refused because the store had said lately that nothing is left, or because it forgot
    /// something.
    pub refused: u64,
    /// Leases there are.
    pub leases: u64,
    /// Units in them.
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
