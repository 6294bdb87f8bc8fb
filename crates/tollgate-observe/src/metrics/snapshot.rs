//! Snapshot: the counters of the engine and the store at one moment.

use crate::usage::UsageStats;
use tollgate::engine::{CandidateCounts, Counts, Gate, ShedCounts};
use tollgate::store::memory::MemoryStats;
use tollgate::store::redis::LeaseStats;
use tollgate_store::{LeaseStore, StoreErrorKind};

/// The counters of the engine and the store at one moment.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// The limits of the policy in force, in file order. Only the policy names limits, so clients
    /// cannot add label values.
    pub limits: Vec<LimitCounters>,
    /// Counts of candidate limits, by the name of the limit.
    pub candidates: Vec<(Box<str>, CandidateCounts)>,
    /// The classes of requests; empty without shedders.
    pub classes: Vec<ClassMetrics>,
    /// The limit of the adaptive shedder, if it is on.
    pub adaptive_limit: Option<u32>,
    /// The memory store.
    pub memory: MemoryStats,
    /// Leases.
    pub leases: LeaseStats,
    /// Store failures seen by the engine or a probe, by kind.
    pub store_errors: Vec<(StoreErrorKind, u64)>,
    /// Whether the store's circuit breaker is open.
    pub breaker_open: bool,
    /// Clock jumps of the store's servers.
    pub store_clock_leaps: u64,
    /// Generation of the rules; every change counts, overrides included.
    pub generation: u64,
    /// Mode overrides: on all nodes, and on this node only.
    pub mode_overrides: [u64; 2],
    /// Log lines dropped because standard error was not read.
    pub log_lines_dropped: u64,
    /// Open streams of the admin API.
    pub streams_open: u64,
    /// Streams closed because their readers did not read.
    pub streams_stalled: u64,
    /// Decisions missing from all top-key lists.
    pub top_missed: u64,
    /// Lost lines of the decision log and the access log.
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
    /// The limit's decisions.
    pub counts: Counts,
    /// Decisions for new keys in shared cells, because the memory store was full.
    pub overflowed: u64,
}

/// Shedder counters of one class of requests.
#[derive(Clone, Debug, Default)]
pub struct ClassMetrics {
    /// The name of the class.
    pub name: Box<str>,
    /// Requests of the class, by outcome.
    pub counts: ShedCounts,
    /// Total time that requests of the class waited in the queue, in microseconds.
    pub queue_us: u64,
    /// Requests in flight that the adaptive shedder admitted and no upstream has answered.
    pub at_upstream: u64,
}

impl ClassMetrics {
    /// Reads all classes and the adaptive limit.
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
