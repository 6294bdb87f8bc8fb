//! Snapshot: the counters of the engine and of the store, at one moment.

use crate::node::Node;
use crate::observe::log;
use crate::observe::usage::UsageStats;
use std::collections::BTreeMap;
use tollgate::engine::{CandidateCounts, Counts, ShedCounts};
use tollgate::store::memory::MemoryStats;
use tollgate::store::redis::LeaseStats;
use tollgate_store::StoreErrorKind;

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
    pub(crate) fn of(node: &Node) -> (Vec<Self>, Option<u32>) {
        let (rules, adaptive) = (node.gate.rules(), node.gate.adaptive());
        let known = |name: &str| {
            let place = rules.policy().classes().position(|class| class == name)?;
            adaptive.as_ref()?.classes.get(place).copied()
        };
        let classes = node.gate.shed_counts().into_iter().map(|(name, counts)| {
            let known = known(&name).unwrap_or_default();
            let (queue_us, at_upstream) = (known.queue_us, known.in_flight.into());
            Self { name, counts, queue_us, at_upstream }
        });
        (classes.collect(), adaptive.as_ref().map(|adaptive| adaptive.limit))
    }
}

impl MetricsSnapshot {
    /// The counters of `node` now.
    pub(crate) fn of(node: &Node) -> Self {
        let mut overflowed: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for (_, name, count) in node.overflowed() {
            *overflowed.entry(name).or_default() += count;
        }
        let limits = node.gate.counts().into_iter().map(|(name, counts)| LimitCounters {
            overflowed: overflowed.get(&name).copied().unwrap_or_default(),
            name,
            counts,
        });
        let store = node.gate.store();
        let (classes, adaptive_limit) = ClassMetrics::of(node);
        Self {
            limits: limits.collect(),
            candidates: node.gate.candidate_counts(),
            classes,
            adaptive_limit,
            memory: store.memory().map(|memory| memory.stats()).unwrap_or_default(),
            leases: store.leases(),
            store_errors: node
                .gate
                .store_errors()
                .into_iter()
                .chain(store.probe_failures())
                .collect(),
            breaker_open: store.is_breaker_open(),
            store_clock_leaps: store.clock_leaps(),
            generation: node.gate.rules().generation(),
            mode_overrides: node.mode_override_counts(),
            log_lines_dropped: log::dropped_lines(),
            streams_open: node.streams.open(),
            streams_stalled: node.streams.stalled(),
            top_missed: node.top.missed(),
            record_lines_dropped: node.records.dropped_lines(),
            usage: node.usage.as_ref().map(|usage| usage.stats()).unwrap_or_default(),
            is_ready: node.health.is_ready(),
        }
    }
}
