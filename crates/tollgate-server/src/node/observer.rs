//! What sees the decisions of a node.

use crate::observe::tail::Tail;
use crate::observe::top::TopKeys;
use std::sync::Arc;
use tollgate::engine::{DecisionObserver, ObservedAdjustment, ObservedDecision, ReservedUnits};

/// Shows decisions to all that see them.
#[derive(Debug)]
pub(super) struct NodeObserver {
    pub(super) top: Arc<TopKeys>,
    pub(super) tail: Arc<Tail>,
}

impl DecisionObserver for NodeObserver {
    fn decided(&self, decision: &ObservedDecision<'_>) {
        self.top.count(decision);
        self.tail.offer(decision);
    }

    fn adjusted(&self, _: &ObservedAdjustment<'_>) {}

    fn reserved(&self, _: u64, _: &str, _: u64, _: &[ReservedUnits<'_>]) {}

    fn ended(&self, _: u64, _: &str, _: &[u64]) {}
}
