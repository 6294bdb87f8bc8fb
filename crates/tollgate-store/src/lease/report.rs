//! Reports on the holders of a leased limit.

/// The ledger of one limit and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerReport {
    /// The ledger's id: the number of the window, or the ledger's start by the store's clock.
    pub ledger: u64,
    /// The time of the ledger's last use, by the store's clock.
    pub seen_us: u64,
    /// The rest of the grace period at that time.
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
    /// Units returned; the others were spent, or can still be spent.
    pub returned: u64,
    /// The time of the holder's last request, by the store's clock.
    pub last_seen_us: u64,
    /// Whether the holder belongs to this process.
    pub is_this_process: bool,
}
