//! The gate: decides requests by a policy, in order deny cache, store, failure policy.

mod batch;
mod candidate;
mod decide;
mod explain;
mod failure;
mod known_blocks;
mod manage;
mod multi;
mod observer;
mod reload;
mod request;
mod shed;

pub use batch::{SingleCheck, SingleVerdict};
pub use explain::{ExplainedCandidate, ExplainedDecision, ExplainedLimit, Explanation};
pub(crate) use failure::{LocalState, failure_policy, local_state};
pub use manage::Inspected;
pub use multi::{DescriptorMode, MultiCheck, MultiVerdict};
pub(crate) use observer::AdjustedCharge;
pub use observer::{DecisionObserver, ObservedAdjustment, ObservedDecision, ReservedUnits};
pub(crate) use request::{
    DecidedRows, DecisionBuffers, DecisionRequest, FromAnswer, RequestEnd, RequestedLimit,
    recycle_vec,
};

use crate::deny_cache::DenyCache;
use crate::engine::{AdmissionOptions, GateBuffers, GateSetup, Row, Rules, Verdict};
use crate::reservation::{ReservedHolds, SlotRegistry};
use crate::rules::{Counters, INLINE};
use arc_swap::{ArcSwap, Guard};
use failure::StoreErrorCounters;
use known_blocks::KnownBlocks;
use reload::RulesBuilder;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};
use tollgate_core::Intent;
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_store::{Answers, LeaseStore, MemoryStore, Store, StoreReply};

/// A policy over a store. Share it by reference or `Arc`. A reload replaces the policy while
/// requests are decided.
#[derive(Debug)]
pub struct Gate<S = MemoryStore> {
    rules: ArcSwap<Rules>,
    pub(crate) store: S,
    pub(crate) deny_cache: Option<DenyCache>,
    /// Holds this node's shares of limits, and its reservations, while the store fails.
    pub(crate) fallback: OnceLock<MemoryStore>,
    /// The store's blocks of limits that this node decides while the store fails.
    known_blocks: KnownBlocks,
    pub(crate) errors: StoreErrorCounters,
    /// The slots of requests in flight, to be renewed.
    pub(crate) slots: Arc<SlotRegistry>,
    /// The holds of open reservations in the shedders of this node.
    pub(crate) reserved_holds: ReservedHolds,
    /// The counters of inline limits. A reload keeps them.
    inline: [Counters; INLINE.len()],
    /// Sees every decision.
    pub(crate) observer: Option<Arc<dyn DecisionObserver>>,
    builder: Mutex<RulesBuilder>,
}

/// The [`Rules`] in force when the guard was made. A reload does not change them.
#[derive(Debug)]
pub struct RulesGuard(Guard<Arc<Rules>>);

impl Deref for RulesGuard {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        &self.0
    }
}

impl<S: LeaseStore> Gate<S> {
    /// A gate with this setup over `store`.
    ///
    /// # Errors
    ///
    /// If the limits do not compile to a policy.
    pub fn new(setup: GateSetup, store: S) -> Result<Self, InvalidPolicy> {
        let (builder, rules) = RulesBuilder::new(setup, &store)?;
        Ok(Self {
            rules: ArcSwap::from_pointee(rules),
            store,
            deny_cache: None,
            fallback: OnceLock::new(),
            known_blocks: KnownBlocks::default(),
            errors: StoreErrorCounters::default(),
            slots: Arc::default(),
            reserved_holds: ReservedHolds::default(),
            inline: Default::default(),
            observer: None,
            builder: Mutex::new(builder),
        })
    }
}

impl<S: Store> Gate<S> {
    /// Adds a deny cache, so that a flood on a refused key does not reach a shared store.
    pub fn with_deny_cache(mut self, deny_cache: DenyCache) -> Self {
        self.deny_cache = Some(deny_cache);
        self
    }

    /// Shows every decision to `observer`.
    pub fn with_observer(mut self, observer: Arc<dyn DecisionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The rules in force.
    pub fn rules(&self) -> RulesGuard {
        RulesGuard(self.rules.load())
    }

    /// The store in use.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Drops expired state of the fallback store, a sixteenth of its shards per call. Also drops
    /// blocks that have ended, and the charges of expired reservations. Call it from a timer.
    pub fn sweep(&self, now_us: u64) {
        self.reserved_holds.expire(now_us);
        self.known_blocks.expire(now_us);
        if let Some(fallback) = self.fallback.get() {
            fallback.sweep(now_us, fallback.shard_count() / 16);
        }
    }

    /// Decides one request, and charges it if it is admitted.
    pub fn check<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Verdict<'r>, S::Undecided> {
        self.decide_facts(rules, now_us, facts, cost, Intent::Take, gate_buffers)
    }

    /// Answers as [`check`](Self::check) would, and charges nothing.
    pub fn peek<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Verdict<'r>, S::Undecided> {
        self.decide_facts(rules, now_us, facts, cost, Intent::Peek, gate_buffers)
    }

    /// Shows the client's figures for the enforced limits, up to `most` of them; charges nothing.
    /// Attributes in `open` may have any value: see [`Policy::select_possible`]. The deny cache
    /// does not answer, since it knows only refusals.
    ///
    /// [`Policy::select_possible`]: tollgate_policy::policy::Policy::select_possible
    pub fn standing<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        open: &[&str],
        most: usize,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Verdict<'r>, S::Undecided> {
        let GateBuffers { selection, answers, rows, decision_buffers, .. } = gate_buffers;
        rules.policy().select_possible(facts, open, most, selection);
        let mut request = DecisionRequest::new(rules, now_us, decision_buffers);
        request.push_selected(rules.policy().selected(selection), Intent::Peek);
        request.uses_deny_cache = false;
        self.decide_verdict(request, Intent::Peek, (answers, decision_buffers), rows)
    }

    fn decide_facts<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        intent: Intent,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, Verdict<'r>, S::Undecided> {
        let GateBuffers { selection, answers, rows, decision_buffers: buffers, .. } = gate_buffers;
        let options = AdmissionOptions { cost, is_end_seen: false, ..Default::default() };
        let request =
            DecisionRequest::select(rules, now_us, facts, &options, intent, selection, buffers);
        self.decide_verdict(request, intent, (answers, buffers), rows)
    }

    fn decide_verdict<'a, 'r: 'a>(
        &'a self,
        request: DecisionRequest<'a, 'r>,
        intent: Intent,
        buffers: (&'a mut Answers, &'a mut DecisionBuffers),
        rows: &mut Vec<Row<'static>>,
    ) -> StoreReply<'a, Verdict<'r>, S::Undecided> {
        self.decide(request, buffers, std::mem::take(rows), move |request, decided, _| {
            let verdict = decided.into_verdict(request);
            if intent == Intent::Take {
                Self::count_class(request.rules, &verdict);
            }
            verdict
        })
    }
}
