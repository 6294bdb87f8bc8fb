//! The engine: identify, select, decide, verdict.

mod change;
mod each;
mod errors;
mod failure;
mod manage;
mod now;
pub(crate) mod parts;

pub use change::{ModeChange, UnknownLimit};
pub use each::{Decided, Desk, Single};
pub use manage::Inspected;

use crate::counters::Counters;
use crate::deny_cache::{DenyCache, Flight, Places};
use crate::reservation::Slots;
use crate::{Rules, Setup, Verdict, Work};
use arc_swap::{ArcSwap, Guard};
use change::Wanted;
use errors::Errors;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};
use tollgate_core::Intent;
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::{InvalidPolicy, Selected};
use tollgate_store::{Answers, Charge, MemoryStore, Request, Store};

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
    /// Of limits that requests bring with them, and of callers' own numbers.
    foreign: Foreign,
    wanted: Mutex<Wanted>,
}

/// Counters of limits that no file has, and so no reload touches.
#[derive(Debug, Default)]
struct Foreign {
    brought: Counters,
    own: Counters,
}

/// What limits are called in figures that requests bring with them, and callers' own numbers.
const FOREIGN: [&str; 2] = ["override", "CL.THROTTLE"];

/// The [`Rules`] in force when it was asked for. Whoever holds it is not disturbed by a reload.
#[derive(Debug)]
pub struct InForce(Guard<Arc<Rules>>);

impl Deref for InForce {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        &self.0
    }
}

impl<S: Store> Gate<S> {
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
            foreign: Foreign::default(),
            wanted: Mutex::new(wanted),
        })
    }

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
    pub async fn check<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &mut Work,
    ) -> Verdict<'r> {
        let verdict = self.decide(rules, now_us, facts, cost, Intent::Take, work).await;
        rules.count(&verdict);
        verdict
    }

    /// Answers as [`check`](Self::check) would, and consumes nothing.
    pub async fn peek<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        work: &mut Work,
    ) -> Verdict<'r> {
        self.decide(rules, now_us, facts, cost, Intent::Peek, work).await
    }

    /// Shows the client's figures for every enforced limit, up to `most` of them; consumes nothing.
    /// Attributes in `open` may have any value: see [`Policy::select_open`]. The deny cache is not
    /// asked, since it knows only refusals.
    ///
    /// [`Policy::select_open`]: tollgate_policy::policy::Policy::select_open
    pub async fn standing<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        open: &[&str],
        most: usize,
        work: &mut Work,
    ) -> Verdict<'r> {
        let Work { selection, answers, rows } = work;
        rules.policy().select_open(facts, open, most, selection);
        let selected = rules.policy().selected(selection);
        let charges: Charges<'_> = selected.clone().map(|one| rules.charge(&one)).collect();
        let (rows, recall) = (std::mem::take(rows), Recall::No);
        self.ask(rules, now_us, selected, &charges, Intent::Peek, answers, rows, recall).await
    }

    /// Select, decide, verdict.
    async fn decide<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        cost: u64,
        intent: Intent,
        work: &mut Work,
    ) -> Verdict<'r> {
        let Work { selection, answers, rows } = work;
        rules.policy().select(facts, cost, selection);
        let selected = rules.policy().selected(selection);
        let charges: Charges<'_> = selected.clone().map(|one| rules.charge(&one)).collect();
        let rows = std::mem::take(rows);
        self.ask(rules, now_us, selected, &charges, intent, answers, rows, Recall::Yes).await
    }

    /// What the deny cache knows, else what the store says, else what the limits do without it.
    #[expect(clippy::too_many_arguments, reason = "a request, an instant and two buffers")]
    pub(crate) async fn ask<'a, 'r: 'a>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        selected: impl ExactSizeIterator<Item = Selected<'a>> + Clone,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
        mut rows: Vec<crate::Row<'r>>,
        recall: Recall,
    ) -> Verdict<'r> {
        let mut flight = Flight::default();
        let known = recall == Recall::Yes
            && self
                .recall(rules, now_us, selected.clone(), charges, &mut rows, &mut flight)
                .is_some();
        if known {
            Verdict::remembered(rows)
        } else {
            self.ask_store(rules, now_us, selected, charges, intent, answers, rows, flight).await
        }
    }

    /// Adds the rows of a request that the deny cache refuses. Debts must reach the store even when
    /// a limit refuses.
    #[inline]
    pub(crate) fn recall<'a, 'c, 'r: 'a>(
        &'c self,
        rules: &'r Rules,
        now_us: u64,
        selected: impl Iterator<Item = Selected<'a>> + Clone,
        charges: &[Charge<'_>],
        rows: &mut Vec<crate::Row<'r>>,
        flight: &mut Flight<'c>,
    ) -> Option<Places> {
        let owes = |charge: &Charge<'_>| charge.mode.owed().is_some_and(|units| units > 0);
        let deny_cache = self.deny_cache.as_ref().filter(|_| !charges.iter().any(owes))?;
        deny_cache.recall(rules, now_us, selected, charges, rows, flight)
    }

    /// What the store says, else what the limits do without it.
    #[expect(clippy::too_many_arguments, reason = "a request, an instant and two buffers")]
    pub(crate) async fn ask_store<'a, 'r: 'a>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        selected: impl ExactSizeIterator<Item = Selected<'a>> + Clone,
        charges: &[Charge<'_>],
        intent: Intent,
        answers: &mut Answers,
        mut rows: Vec<crate::Row<'r>>,
        flight: Flight<'_>,
    ) -> Verdict<'r> {
        let moment = self
            .deny_cache
            .as_ref()
            .map(|deny_cache| deny_cache.moment(rules, selected.clone().map(Some), charges));
        match self.store.decide(now_us, &[Request { charges, intent }], answers).await {
            Ok(()) => {
                let (allowed, decided) = answers.get(0).unwrap_or((true, &[]));
                rows.extend(
                    selected.clone().zip(decided).map(|(one, answer)| rules.row(&one, answer)),
                );
                // A replica may have answered a peek, and no decision may follow from a replica.
                if let Some((deny_cache, moment)) = self.deny_cache.as_ref().zip(moment)
                    && intent == Intent::Take
                {
                    let place = |charge: &Charge<'_>| self.store.place(charge);
                    if allowed {
                        deny_cache.spend(charges);
                    } else {
                        deny_cache.learn(rules, now_us, selected, charges, decided, place, &moment);
                    }
                }
                flight.land();
                Verdict::new(allowed, rows)
            }
            Err(error) => {
                self.errors.count(&error);
                self.without_store(rules, now_us, selected, charges, intent, answers, rows)
            }
        }
    }
}

/// Whether the deny cache may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recall {
    Yes,
    /// It knows only refusals, which does not do where all figures are shown.
    No,
}

pub(crate) type Charges<'a> = SmallVec<[Charge<'a>; 4]>;
