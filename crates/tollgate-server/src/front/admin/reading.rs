//! What the engine and the store of a node count, for its metrics.

use crate::metrics::{LimitReading, Reading};
use crate::node::Node;
use std::collections::BTreeMap;

/// The figures of now.
pub(super) fn of(node: &Node) -> Reading {
    let rules = node.gate.rules();
    let policy = rules.policy();
    let mut overflowed: BTreeMap<&str, u64> = BTreeMap::new();
    let memory = node.gate.store().memory();
    for (id, count) in memory.map(|memory| memory.overflowed()).unwrap_or_default() {
        // A limit has several states where its tiers have several periods.
        if let Some(variant) = policy.numbers().iter().find(|variant| variant.id == id) {
            *overflowed.entry(&policy.limits()[variant.limit].name).or_default() += count;
        }
    }
    let limits = node.gate.counts().into_iter().map(|(name, counts)| LimitReading {
        overflowed: overflowed.get(&*name).copied().unwrap_or_default(),
        name,
        admitted: counts.admitted,
        refused: counts.refused,
        shadow_refused: counts.shadow_refused,
        fail_open: counts.fail_open,
        fail_closed: counts.fail_closed,
        deny_cache_hits: counts.deny_cache_hits,
    });
    let stats = memory.map(|memory| memory.stats()).unwrap_or_default();
    Reading {
        limits: limits.collect(),
        memory_keys: stats.keys,
        memory_bytes: stats.bytes,
        evicted: stats.evicted,
        uncounted: stats.uncounted,
        store_errors: node.gate.store_errors().to_vec(),
        breaker_open: node.gate.store().is_breaker_open(),
        generation: rules.generation(),
        ..Reading::default()
    }
}
