//! Snapshot: the counters of the engine and of the store, at one moment.

use crate::usage::UsageStats;
use tollgate::engine::{CandidateCounts, Counts, Gate, ShedCounts};
use tollgate::store::memory::MemoryStats;
use tollgate::store::redis::LeaseStats;
use tollgate_store::{LeaseStore, StoreErrorKind};

/// The counters of the engine and of the store, at one moment.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// The limits of the policy in force, in file order. Only the author of the policy chooses
    /// their names, so clients cannot add values of the label.
    pub limits: Vec<LimitCounters>,
    /// What candidates would have done, by the name of the limit.
    pub candidates: Vec<(Box<str>, CandidateCounts)>,
    /// The classes of requests; none without shedders.
    pub classes: Vec<ClassMetrics>,
    /// The limit of the adaptive shedder, if it is on.
    pub adaptive_limit: Option<u32>,
    /// The memory store.
    pub memory: MemoryStats,
    /// Leases.
    pub leases: LeaseStats,
    /// Failures of the store that the engine or a probe met, by kind.
    pub store_errors: Vec<(StoreErrorKind, u64)>,
    /// Whether the store's circuit breaker is open.
    pub breaker_open: bool,
    /// Leaps of the clocks of the store's servers.
    pub store_clock_leaps: u64,
    /// Counts the policies of this process, overrides included.
    pub generation: u64,
    /// Mode overrides: those of the fleet, and those of this node alone.
    pub mode_overrides: [u64; 2],
    /// Lines of the log that standard error did not take.
    pub log_lines_dropped: u64,
    /// Readers of the admin API's streams.
    pub streams_open: u64,
    /// Readers that were cut off because they did not read.
    pub streams_stalled: u64,
    /// Decisions that no list of top keys has.
    pub top_missed: u64,
    /// Lines of the decision log and the access log that were lost.
    pub record_lines_dropped: [u64; 2],
    /// The usage trail.
    pub usage: UsageStats,
    /// Whether the node is ready, as `/readyz` says.
    pub is_ready: bool,
}

/// The counters of one limit.
#[derive(Clone, Debug, Default)]
pub struct LimitCounters {
    /// The limit's name.
    pub name: Box<str>,
    /// Its decisions.
    pub counts: Counts,
    /// Decisions for new keys in shared cells, because the memory store was full.
    pub overflowed: u64,
}

/// What shedders did with the requests of one class.
#[derive(Clone, Debug, Default)]
pub struct ClassMetrics {
    /// The name of the class.
    pub name: Box<str>,
    /// Its requests.
    pub counts: ShedCounts,
    /// The time that its requests waited in the queue, in microseconds.
    pub queue_us: u64,
    /// Requests in flight that the adaptive shedder admitted and no upstream has answered yet.
    pub at_upstream: u64,
}

impl ClassMetrics {
    /// All classes, and the adaptive limit. The adaptive shedder knows the classes in force.
    pub fn of<S: LeaseStore>(gate: &Gate<S>) -> (Vec<Self>, Option<u32>) {
        let (rules, adaptive) = (gate.rules(), gate.adaptive());
        let known = |name: &str| {
            let place = rules.policy().classes().position(|class| class == name)?;
            adaptive.as_ref()?.classes.get(place).copied()
        };
        let classes = gate.shed_counts().into_iter().map(|(name, counts)| {
            let known = known(&name).unwrap_or_default();
            let (queue_us, at_upstream) = (known.queue_us, known.in_flight.into());
            Self { name, counts, queue_us, at_upstream }
        });
        (classes.collect(), adaptive.as_ref().map(|adaptive| adaptive.limit))
    }
}
