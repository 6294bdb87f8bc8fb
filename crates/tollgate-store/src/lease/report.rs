//! Reports on the holders of a leased limit.

/// The ledger of one limit and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerReport {
    /// The ledger's id: the number of the window, or when it began, by the store's clock.
    pub ledger: u64,
    /// When the ledger was last used, by the store's clock.
    pub seen_us: u64,
    /// What was left of the grace period then.
    pub grace_us: u64,
    /// The holders, in a stable order.
    pub holders: Vec<HolderReport>,
}

/// The entry of one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderReport {
    /// The process id, in 32 hex digits: random for every start.
    pub process: Box<str>,
    /// The holder's number in the process.
    pub number: u64,
    /// Units granted in this ledger.
    pub granted: u64,
    /// Units returned; the others were spent, or can still be.
    pub returned: u64,
    /// When the holder last sent a request, by the store's clock.
    pub last_seen_us: u64,
    /// Whether it is a holder of this process.
    pub is_this_process: bool,
}
