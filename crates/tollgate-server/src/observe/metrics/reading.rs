//! What the engine and the store count, at one moment.

use tollgate_store::StoreErrorKind;

/// What the engine and the store count, at one moment.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// The limits of the policy in force, in file order: who may choose a label's value is whoever
    /// writes the policy.
    pub limits: Vec<LimitCounters>,
    /// Keys in the memory store.
    pub memory_keys: u64,
    /// Bytes in use there, as counted against its cap.
    pub memory_bytes: u64,
    /// Keys that the full memory store forgot although they were not idle.
    pub evicted: u64,
    /// Refusals that no penalty counted, for want of memory.
    pub uncounted: u64,
    /// How often the store turned out to have forgotten what it had granted.
    pub lease_rollbacks: u64,
    /// What leases came to besides.
    pub leases: LeaseCounters,
    /// Failures of the store that the engine met, by kind.
    pub store_errors: Vec<(StoreErrorKind, u64)>,
    /// Whether the store's circuit breaker is open.
    pub breaker_open: bool,
    /// Counts up with every change of the policy, overrides included.
    pub generation: u64,
}

/// What leases came to. Units are those of all leased limits together.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseCounters {
    /// Units that the store granted.
    pub granted: u64,
    /// Units that requests took from leases.
    pub spent: u64,
    /// Units that went back to the store.
    pub returned: u64,
    /// Units that came too late for either.
    pub stranded: u64,
    /// Units held at the moment.
    pub held: u64,
    /// Keys of which there are leases.
    pub keys: u64,
    /// Calls about leases.
    pub calls: u64,
    /// Charges of leased limits decided by a lease, by the store, and by what the store had said a
    /// moment ago.
    pub decisions: [u64; 3],
}

/// What is counted for one limit.
#[derive(Clone, Debug, Default)]
pub struct LimitCounters {
    /// The limit's name.
    pub name: Box<str>,
    /// Requests it admitted.
    pub admitted: u64,
    /// Requests it refused.
    pub refused: u64,
    /// Requests it would have refused, were it enforced.
    pub shadow_refused: u64,
    /// Requests let through since the store failed.
    pub fail_open: u64,
    /// Requests turned away since the store failed.
    pub fail_closed: u64,
    /// Refusals from memory of an earlier one.
    pub deny_cache_hits: u64,
    /// Decisions for new keys that shared a cell, since the memory store was full.
    pub overflowed: u64,
}
