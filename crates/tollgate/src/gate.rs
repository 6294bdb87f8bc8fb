//! The engine: identify, select, decide, verdict.

mod batch;
mod change;
mod decide;
mod errors;
mod failure;
mod manage;
pub(crate) mod parts;

pub use batch::{Decided, SingleCheck};
pub use change::{ModeChange, UnknownLimit};
pub(crate) use decide::{Asked, FromAnswer, Question, QuestionMemory, Told, emptied};
pub use manage::Inspected;

use crate::counters::Counters;
use crate::deny_cache::DenyCache;
use crate::reservation::Slots;
use crate::rules::INLINE;
use crate::{Rules, Setup, Verdict, Work};
use arc_swap::{ArcSwap, Guard};
use change::Wanted;
use errors::Errors;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};
use tollgate_core::Intent;
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_store::{LeaseStore, MemoryStore, Reply, Store};

/// A policy over a store. Shared by reference or `Arc`; the policy can be replaced while requests are decided.
#[derive(Debug)]
pub struct Gate<S = MemoryStore> {
    rules: ArcSwap<Rules>,
    pub(crate) store: S,
    pub(crate) deny_cache: Option<DenyCache>,
    /// Where limits that fall back on this node's share are counted while the store cannot be asked, and reservations made then are kept.
    pub(crate) fallback: OnceLock<MemoryStore>,
    pub(crate) errors: Errors,
    /// What requests under way hold, to be renewed.
    pub(crate) slots: Arc<Slots>,
    /// Counters of inline limits, which no file has and no reload touches.
    inline: [Counters; INLINE.len()],
    wanted: Mutex<Wanted>,
}

/// The [`Rules`] in force when it was asked for. Whoever holds it is not disturbed by a reload.
#[derive(Debug)]
pub struct InForce(Guard<Arc<Rules>>);

impl Deref for InForce {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        &self.0
    }
}

impl<S: LeaseStore> Gate<S> {
    /// Puts `setup` in force over `store`.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy.
    pub fn new(setup: Setup, store: S) -> Result<Self, InvalidPolicy> {
        let (wanted, rules) = Wanted::new(setup, &store)?;
        Ok(Self {
            rules: ArcSwap::from_pointee(rules),
            store,
            deny_cache: None,
            fallback: OnceLock::new(),
            errors: Errors::default(),
            slots: Arc::default(),
            inline: Default::default(),
            wanted: Mutex::new(wanted),
        })
    }
}

impl<S: Store> Gate<S> {
    /// Remembers refusals for a while, so that a flood on a refused key does not reach a shared store.
    pub fn with_deny_cache(mut self, deny_cache: DenyCache) -> Self {
        self.deny_cache = Some(deny_cache);
        self
    }

    /// The rules in force.
    pub fn rules(&self) -> InForce {
        InForce(self.rules.load())
    }

    /// The store in use.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Forgets what has expired, a part of the fallback's shards at a time. For a timer; nothing waits for it.
    pub fn sweep(&self, now_us: u64) {
        if let Some(fallback) = self.fallback.get() {
            fallback.sweep(now_us, fallback.shard_count() / 16);
        }
    }

    /// Decides one request and consumes what it admits.
    pub fn check<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &'a mut Work,
    ) -> Reply<'a, Verdict<'r>, S::Rest> {
        rules.policy().select(facts, cost, &mut work.selection);
        self.decide_selected(rules, now_us, Intent::Take, true, work)
    }

    /// Answers as [`check`](Self::check) would, and consumes nothing.
    pub fn peek<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &'a mut Work,
    ) -> Reply<'a, Verdict<'r>, S::Rest> {
        rules.policy().select(facts, cost, &mut work.selection);
        self.decide_selected(rules, now_us, Intent::Peek, true, work)
    }

    /// Shows the client's figures for every enforced limit, up to `most` of them; consumes nothing.
    /// Attributes in `open` may have any value: see [`Policy::select_open`]. The deny cache is not
    /// asked, since it knows only refusals.
    ///
    /// [`Policy::select_open`]: tollgate_policy::policy::Policy::select_open
    pub fn standing<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        open: &[&str],
        most: usize,
        work: &'a mut Work,
    ) -> Reply<'a, Verdict<'r>, S::Rest> {
        rules.policy().select_open(facts, open, most, &mut work.selection);
        self.decide_selected(rules, now_us, Intent::Peek, false, work)
    }

    /// Decides by the limits that were selected.
    fn decide_selected<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        intent: Intent,
        recall: bool,
        work: &'a mut Work,
    ) -> Reply<'a, Verdict<'r>, S::Rest> {
        let Work { selection, answers, rows, memory, .. } = work;
        let mut question = Question::new(rules, now_us, memory);
        question.recall = recall;
        question.ask(rules.policy().selected(selection), intent);
        let buffers = (answers, memory);
        self.decide(question, buffers, std::mem::take(rows), |_, told, _| told.into())
    }
}
