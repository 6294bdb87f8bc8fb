//! What the engine and the store of a node count, for its metrics.

use crate::node::Node;
use crate::observe::metrics::{LeaseCounters, LimitCounters, MetricsSnapshot};
use std::collections::BTreeMap;

/// The figures of now.
pub(crate) fn snapshot(node: &Node) -> MetricsSnapshot {
    let rules = node.gate.rules();
    let mut overflowed: BTreeMap<Box<str>, u64> = BTreeMap::new();
    for (_, name, count) in node.overflowed() {
        *overflowed.entry(name).or_default() += count;
    }
    let limits = node.gate.counts().into_iter().map(|(name, counts)| LimitCounters {
        overflowed: overflowed.get(&name).copied().unwrap_or_default(),
        name,
        admitted: counts.admitted,
        refused: counts.refused,
        shadow_refused: counts.shadow_refused,
        fail_open: counts.fail_open,
        fail_closed: counts.fail_closed,
        deny_cache_hits: counts.deny_cache_hits,
    });
    let memory = node.gate.store().memory();
    let stats = memory.map(|memory| memory.stats()).unwrap_or_default();
    let leases = node.gate.store().leases();
    MetricsSnapshot {
        limits: limits.collect(),
        lease_rollbacks: leases.rollbacks,
        leases: LeaseCounters {
            granted: leases.granted,
            spent: leases.spent,
            returned: leases.returned,
            stranded: leases.stranded,
            held: leases.held,
            keys: leases.leases,
            calls: leases.calls,
            decisions: [leases.local, leases.direct, leases.refused],
        },
        memory_keys: stats.keys,
        memory_bytes: stats.bytes,
        evicted: stats.evicted,
        uncounted: stats.uncounted,
        store_errors: node
            .gate
            .store_errors()
            .into_iter()
            .chain(node.gate.store().probe_failures())
            .collect(),
        breaker_open: node.gate.store().is_breaker_open(),
        generation: rules.generation(),
    }
}
