//! Figures of a node, for `/metrics`, the dashboard and background threads.

use super::Node;
use std::collections::BTreeMap;
use tollgate::StoreError;
use tollgate::engine::RulesGuard;
use tollgate_observe::keys::KeySecrets;
use tollgate_observe::metrics::{ClassMetrics, LimitCounters, Metrics, MetricsSnapshot};
use tollgate_observe::top::{TopQuery, TopView};
use tollgate_observe::{ObservedNode, log};

impl ObservedNode for Node {
    fn rules(&self) -> RulesGuard {
        self.gate.rules()
    }

    fn keys(&self) -> &KeySecrets {
        &self.keys
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn snapshot(&self) -> MetricsSnapshot {
        let mut overflowed: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for (_, name, count) in self.overflowed() {
            *overflowed.entry(name).or_default() += count;
        }
        let limits = self.gate.counts().into_iter().map(|(name, counts)| LimitCounters {
            overflowed: overflowed.get(&name).copied().unwrap_or_default(),
            name,
            counts,
        });
        let store = self.gate.store();
        let (classes, adaptive_limit) = ClassMetrics::of(&self.gate);
        MetricsSnapshot {
            limits: limits.collect(),
            candidates: self.gate.candidate_counts(),
            classes,
            adaptive_limit,
            memory: store.memory().map(|memory| memory.stats()).unwrap_or_default(),
            leases: store.leases(),
            store_errors: self
                .gate
                .store_errors()
                .into_iter()
                .chain(store.probe_failures())
                .collect(),
            breaker_open: store.is_breaker_open(),
            store_clock_leaps: store.clock_leaps(),
            generation: self.gate.rules().generation(),
            mode_overrides: self.mode_override_counts(),
            log_lines_dropped: log::dropped_lines(),
            streams_open: self.streams.open(),
            streams_stalled: self.streams.stalled(),
            top_missed: self.top.missed(),
            record_lines_dropped: self.records.dropped_lines(),
            usage: self.usage.as_ref().map(|usage| usage.stats()).unwrap_or_default(),
            is_ready: self.health.is_ready(),
        }
    }
}

impl Node {
    /// The top keys of this node.
    pub(crate) fn top_of_node(&self, wanted: &TopQuery) -> TopView {
        self.top.view(self.clock.now_us(), &self.gate.rules(), &self.keys, wanted)
    }

    /// The top keys of all nodes of the store; with the memory store, of this node.
    pub(crate) async fn top_of_fleet(&self, wanted: &TopQuery) -> Result<TopView, StoreError> {
        let store = self.gate.store().redis();
        self.fleet_top.view(store, wanted, |wanted| self.top_of_node(wanted)).await
    }

    /// Shares data with the other nodes of the store: the secret that hashes keys, and the top
    /// keys.
    pub(crate) async fn share_figures(&self) -> Result<(), StoreError> {
        let Some(store) = self.gate.store().redis() else { return Ok(()) };
        let secret = self.keys.poll_shared(store).await;
        let view = |wanted: &TopQuery| self.top_of_node(wanted);
        let published = self.fleet_top.publish(store, self.clock.now_us(), view).await;
        secret.and(published)
    }
}
