//! A node without front ends, for tests of decision watchers.

use crate::keys::KeySecrets;
use crate::metrics::{ClassMetrics, LimitCounters, Metrics, MetricsSnapshot};
use crate::record::Records;
use crate::tail::Tail;
use crate::top::TopKeys;
use crate::usage::UsageTrail;
use crate::{DecisionWatchers, ObservedNode};
use std::path::Path;
use std::sync::Arc;
use tollgate::engine::{Gate, GateBuffers, GateSetup, RulesGuard};
use tollgate::store::{MemoryStore, StoreReply};
use tollgate_policy::compile;
use tollgate_policy::settings::Settings;

/// A gate on the memory store, with watchers and records.
pub(crate) struct TestNode {
    pub(crate) gate: Gate<MemoryStore>,
    pub(crate) keys: KeySecrets,
    pub(crate) metrics: Metrics,
    pub(crate) records: Records,
    pub(crate) settings: Settings,
    pub(crate) tail: Arc<Tail>,
    pub(crate) top: Arc<TopKeys>,
    pub(crate) usage: Option<Arc<UsageTrail>>,
}

impl TestNode {
    /// Creates a node from a policy's text. Relative paths in the policy start in `folder`.
    pub(crate) fn in_folder(folder: &Path, policy: &str) -> Self {
        let compiled = compile(policy.as_bytes()).unwrap();
        let (top, tail) = (Arc::<TopKeys>::default(), Arc::<Tail>::default());
        let usage = compiled.settings.usage.as_ref();
        let usage = usage.map(|usage| Arc::new(UsageTrail::new(usage)));
        let watchers =
            DecisionWatchers { top: top.clone(), tail: tail.clone(), usage: usage.clone() };
        let gate = Gate::new(GateSetup::of(&compiled), MemoryStore::default()).unwrap();
        let records = Records::default();
        records.set(records.open(&compiled.settings, folder).unwrap());
        Self {
            gate: gate.with_observer(Arc::new(watchers)),
            keys: KeySecrets::default(),
            metrics: Metrics::default(),
            records,
            settings: compiled.settings,
            tail,
            top,
            usage,
        }
    }

    /// Decides a request with these attributes; returns whether it is admitted.
    pub(crate) fn check(&self, now_us: u64, attributes: &[(&str, &str)], cost: u64) -> bool {
        let rules = self.gate.rules();
        let mut facts = rules.facts(Default::default());
        attributes.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
        let mut work = GateBuffers::default();
        answer_now(self.gate.check(&rules, now_us, &facts, cost, &mut work)).allowed
    }
}

impl ObservedNode for TestNode {
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
        let counts = self.gate.counts().into_iter();
        let limits =
            counts.map(|(name, counts)| LimitCounters { name, counts, ..LimitCounters::default() });
        let (classes, adaptive_limit) = ClassMetrics::of(&self.gate);
        MetricsSnapshot {
            limits: limits.collect(),
            classes,
            adaptive_limit,
            ..MetricsSnapshot::default()
        }
    }
}

/// The answer of a store that replies immediately.
pub(crate) fn answer_now<T, R>(reply: StoreReply<'_, T, R>) -> T {
    match reply {
        StoreReply::Now(answer) => answer,
        _ => panic!("the memory store answers at once"),
    }
}
