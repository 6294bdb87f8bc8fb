//! Passes each decision of the engine to top keys, tail and usage trail.

use crate::tail::Tail;
use crate::top::TopKeys;
use crate::usage::UsageTrail;
use std::sync::Arc;
use tollgate::engine::{DecisionObserver, ObservedAdjustment, ObservedDecision, ReservedUnits};

/// The watchers of a node: give it to [`Gate::with_observer`].
///
/// [`Gate::with_observer`]: tollgate::engine::Gate::with_observer
#[derive(Debug)]
pub struct DecisionWatchers {
    /// The top keys.
    pub top: Arc<TopKeys>,
    /// The readers of the tail.
    pub tail: Arc<Tail>,
    /// The usage trail, if the policy has `usage`.
    pub usage: Option<Arc<UsageTrail>>,
}

impl DecisionObserver for DecisionWatchers {
    fn decided(&self, decisions: &[ObservedDecision<'_>]) {
        self.top.count(decisions);
        self.tail.offer(decisions);
        if let Some(usage) = &self.usage {
            decisions.iter().for_each(|decision| usage.decided(decision));
        }
    }

    fn adjusted(&self, adjustment: &ObservedAdjustment<'_>) {
        if let Some(usage) = &self.usage {
            usage.adjusted(adjustment);
        }
    }

    fn reserved(&self, now_us: u64, id: &str, ttl_us: u64, charges: &[ReservedUnits<'_>]) {
        if let Some(usage) = &self.usage {
            usage.reserved(now_us, id, ttl_us, charges);
        }
    }

    fn ended(&self, now_us: u64, id: &str, units: &[u64]) {
        if let Some(usage) = &self.usage {
            usage.ended(now_us, id, units);
        }
    }
}
