//! What sees the decisions of a node.

use crate::observe::tail::Tail;
use crate::observe::top::TopKeys;
use crate::observe::usage::UsageTrail;
use std::sync::Arc;
use tollgate::engine::{DecisionObserver, ObservedAdjustment, ObservedDecision, ReservedUnits};

/// Shows decisions to all that see them.
#[derive(Debug)]
pub(super) struct NodeObserver {
    pub(super) top: Arc<TopKeys>,
    pub(super) tail: Arc<Tail>,
    pub(super) usage: Option<Arc<UsageTrail>>,
}

impl DecisionObserver for NodeObserver {
    fn decided(&self, decision: &ObservedDecision<'_>) {
        self.top.count(decision);
        self.tail.offer(decision);
        if let Some(usage) = &self.usage {
            usage.decided(decision);
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
