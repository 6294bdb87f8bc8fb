//! Who holds what of a leased limit.

/// What the store knows of the leases of one limit for one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerReport {
    /// Its name: the number of the window, or the instant at which it was begun, by the store's
    /// clock.
    pub ledger: u64,
    /// When it was last used, by the store's clock.
    pub seen_us: u64,
    /// How long nothing was to be granted then, because the store had forgotten something.
    pub quiet_us: u64,
    /// Who holds or held something, in a stable order.
    pub holders: Vec<HolderReport>,
}

/// What one holder has been granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderReport {
    /// The process, in 32 digits: another one after every start.
    pub process: Box<str>,
    /// Which of its holdings.
    pub number: u64,
    /// Units granted in this ledger.
    pub granted: u64,
    /// Units returned of them. The others were spent, or can still be.
    pub returned: u64,
    /// When it was last heard, by the store's clock.
    pub last_seen_us: u64,
    /// Whether it is the process that was asked.
    pub is_this_process: bool,
}
