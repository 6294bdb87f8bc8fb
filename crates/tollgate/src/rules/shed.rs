//! Shedders in force: counters of classes, and the data for the fleet's slots.

use crate::engine::{ShedVerdict, Verdict};
use crate::rules::ByName;
use crate::shed::{
    AdaptiveSettings, AdaptiveShedder, Entry, QueuedEntry, ShedReason, ShedRequest, ShedTicket,
};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollgate_core::LimitParams;
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::{Mode, Selector};
use tollgate_policy::policy::Policy;
use tollgate_policy::shed::ShedPolicy;
use tollgate_store::{ParamsId, Store};

/// The longest wait in a refusal by the fleet. Waits are random, so that clients do not return
/// together.
const RETRY_AFTER_US_MAX: u64 = 3_000_000;

/// The shedders of one version of the rules.
#[derive(Debug)]
pub(crate) struct ShedRules {
    counters: Box<[Arc<ClassCounters>]>,
    /// The parameters of the fleet's slots for requests whose end is not seen, by the index of the
    /// limit.
    assumed: Box<[(usize, LimitParams, ParamsId)]>,
    random: Arc<RandomSequence>,
    seed: Option<u64>,
    /// The adaptive shedder and its mode, unless it is off.
    adaptive: Option<(Mode, AdaptiveShedder)>,
}

/// State that survives a reload.
#[derive(Debug, Default)]
pub(crate) struct ShedState {
    /// Counters of classes, also of removed ones: a counter never decreases.
    counters: ByName<Arc<ClassCounters>>,
    random: Arc<RandomSequence>,
    /// The adaptive shedder, which keeps its learnt limit when its settings change.
    adaptive: Option<AdaptiveShedder>,
}

/// Numbers that clients cannot predict, unless a simulation has a seed.
#[derive(Debug, Default)]
pub(crate) struct RandomSequence {
    key: RandomState,
    drawn: AtomicU64,
}

/// The counters of one class. Requests refused by their own limits are not counted.
#[derive(Debug, Default)]
pub(crate) struct ClassCounters {
    admitted: AtomicU64,
    shed: [AtomicU64; ShedReason::ALL.len()],
    /// Shared with the requests in the queue.
    left: Arc<AtomicU64>,
    shadow_shed: [AtomicU64; ShedReason::ALL.len()],
    in_flight: AtomicU64,
}

/// Shedder counts of one class of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedCounts {
    /// Requests that shedders admitted.
    pub admitted: u64,
    /// Requests that were shed, in the order of [`ShedReason::ALL`].
    pub shed: [u64; ShedReason::ALL.len()],
    /// Requests whose clients left the queue of the adaptive shedder.
    pub left: u64,
    /// Requests that a shedder in shadow mode would have shed, in the same order.
    pub shadow_shed: [u64; ShedReason::ALL.len()],
    /// Requests in flight at this node whose end is seen.
    pub in_flight: u64,
}

impl ShedCounts {
    /// Requests that shedders saw: admitted, shed, and left. A waiting request is not counted yet.
    pub fn offered(&self) -> u64 {
        self.admitted + self.shed.iter().sum::<u64>() + self.left
    }
}

impl ShedState {
    pub(crate) fn rules(
        &mut self,
        (shed, seed): (&ShedPolicy, Option<u64>),
        policy: &Policy,
        store: &impl Store,
    ) -> ShedRules {
        let mut counters = |name: &str| Arc::clone(self.counters.entry(name.into()).or_default());
        let counters = policy.classes().map(&mut counters).collect();
        let assume_us = shed.fleet.as_ref().map(|fleet| fleet.assume_us);
        let assumed = policy.limits().iter().enumerate().filter_map(|(index, limit)| {
            let slots = match limit.params? {
                LimitParams::Concurrency(slots) if limit.selector.is_shed() => slots,
                _ => return None,
            };
            let params = LimitParams::Concurrency(slots.with_ttl(assume_us?).ok()?);
            Some((index, params, store.register_params(&params)))
        });
        let (assumed, random) = (assumed.collect(), Arc::clone(&self.random));
        let own = policy.limits().iter().find(|limit| limit.selector == Selector::Never);
        let mode = own.map(|limit| limit.mode).filter(|mode| *mode != Mode::Off);
        self.update_adaptive(shed, seed, mode == Some(Mode::Shadow));
        let adaptive = mode.zip(self.adaptive.clone());
        ShedRules { counters, assumed, random, seed, adaptive }
    }

    fn update_adaptive(&mut self, shed: &ShedPolicy, seed: Option<u64>, is_shadow: bool) {
        let Some(bounds) = &shed.adaptive else {
            self.adaptive = None;
            return;
        };
        let classes = u8::try_from(shed.classes.len()).unwrap_or(u8::MAX);
        let settings = AdaptiveSettings::new(classes).between(bounds.min, bounds.max);
        let settings = settings.shadow(is_shadow);
        match (&self.adaptive, seed) {
            (Some(shedder), _) => shedder.update(settings),
            (None, Some(seed)) => {
                self.adaptive = Some(AdaptiveShedder::with_seed(settings, seed));
            }
            (None, None) => self.adaptive = Some(AdaptiveShedder::new(settings)),
        }
    }

    /// The adaptive shedder, if the policy has one.
    pub(crate) fn adaptive(&self) -> Option<&AdaptiveShedder> {
        self.adaptive.as_ref()
    }

    /// The counts of each class, by its name.
    pub(crate) fn counts(&self) -> Vec<(Box<str>, ShedCounts)> {
        self.counters.iter().map(|(name, counters)| (name.clone(), counters.read())).collect()
    }
}

impl ShedRules {
    /// The parameters of a slot that is never given back.
    pub(crate) fn assumed(&self, limit: usize) -> Option<(&LimitParams, ParamsId)> {
        let mut assumed = self.assumed.iter();
        assumed.find(|(index, ..)| *index == limit).map(|(_, params, id)| (params, *id))
    }

    /// The wait of a client for which the fleet has no room.
    pub(crate) fn retry_after_us(&self) -> u64 {
        1 + self.random.next(self.seed) % RETRY_AFTER_US_MAX
    }

    /// Whether requests enter the adaptive shedder.
    #[inline]
    pub(crate) fn is_adaptive(&self) -> bool {
        self.adaptive.is_some()
    }

    /// A hash of the request's client, for fairness between clients; 0 if nothing uses it.
    #[inline]
    pub(crate) fn client(&self, policy: &Policy, facts: &Facts<'_>) -> u64 {
        if self.is_adaptive() && policy.has_fair_by() { self.client_hash(policy, facts) } else { 0 }
    }

    #[inline(never)]
    fn client_hash(&self, policy: &Policy, facts: &Facts<'_>) -> u64 {
        match self.seed {
            Some(_) => policy.client_hash(facts, &BuildHasherDefault::<DefaultHasher>::new()),
            None => policy.client_hash(facts, &self.random.key),
        }
    }

    /// Enters the adaptive shedder with an admitted request. In shadow mode the request is never
    /// shed: the verdict has the reason, and a shadow entry takes its place in the queue. If a slot
    /// is free, calls `admit` with the ticket and returns `None`.
    #[inline(always)]
    pub(crate) fn enter(
        &self,
        verdict: &mut Verdict<'_>,
        client: u64,
        now_us: u64,
        admit: impl FnOnce(ShedTicket),
    ) -> Option<ShedEntry> {
        let (mode, shedder) = self.adaptive.as_ref()?;
        let shed = verdict.shed.as_mut().filter(|_| verdict.allowed)?;
        let class = u8::try_from(shed.class).unwrap_or(u8::MAX);
        let entry = shedder.enter_with(now_us, ShedRequest { class, client }, admit)?;
        self.entered_later(*mode, shed, entry)
    }

    /// Applies the mode to the entry of a request that found no free slot.
    #[inline(never)]
    fn entered_later(
        &self,
        mode: Mode,
        shed: &mut ShedVerdict,
        mut entry: Entry,
    ) -> Option<ShedEntry> {
        if let (Mode::Enforce, Entry::Queued(queued)) = (mode, &mut entry)
            && let Some(counters) = self.counters.get(shed.class)
        {
            queued.count_left(Arc::clone(&counters.left));
        }
        match (mode, entry) {
            (Mode::Shadow, Entry::Queued(queued)) => Some(ShedEntry::Shadow(queued)),
            (Mode::Shadow, Entry::Shed(refusal)) => {
                shed.shadow_reason = Some(refusal.reason);
                None
            }
            (_, entry) => Some(ShedEntry::Enforced(entry)),
        }
    }

    #[inline]
    pub(crate) fn counters(&self, class: usize) -> Option<&Arc<ClassCounters>> {
        self.counters.get(class)
    }
}

impl RandomSequence {
    fn next(&self, seed: Option<u64>) -> u64 {
        let drawn = self.drawn.fetch_add(1, Relaxed);
        match seed {
            Some(seed) => BuildHasherDefault::<DefaultHasher>::new().hash_one((seed, drawn)),
            None => self.key.hash_one(drawn),
        }
    }
}

impl ClassCounters {
    /// Counts the outcome of a request of this class.
    #[inline]
    pub(crate) fn count(&self, shed: &ShedVerdict, is_allowed: bool) {
        match shed.reason {
            Some(reason) => self.shed[reason.index()].fetch_add(1, Relaxed),
            None if is_allowed => self.admitted.fetch_add(1, Relaxed),
            None => return,
        };
        if let Some(reason) = shed.shadow_reason {
            self.shadow_shed[reason.index()].fetch_add(1, Relaxed);
        }
    }

    fn read(&self) -> ShedCounts {
        let all = |counters: &[AtomicU64; 3]| counters.each_ref().map(|it| it.load(Relaxed));
        ShedCounts {
            admitted: self.admitted.load(Relaxed),
            shed: all(&self.shed),
            left: self.left.load(Relaxed),
            shadow_shed: all(&self.shadow_shed),
            in_flight: self.in_flight.load(Relaxed),
        }
    }
}

/// The result of entering the adaptive shedder.
#[derive(Debug)]
pub(crate) enum ShedEntry {
    Enforced(Entry),
    /// In shadow mode the request continues, and its shadow entry in the queue shows its fate.
    Shadow(QueuedEntry),
}

/// A request in flight, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightCount(Arc<ClassCounters>);

impl InFlightCount {
    #[inline]
    pub(crate) fn new(counters: &Arc<ClassCounters>) -> Self {
        counters.in_flight.fetch_add(1, Relaxed);
        Self(Arc::clone(counters))
    }

    /// Counts that the shedder would have shed the request, were it not in shadow mode.
    pub(crate) fn count_shadow(&self, reason: ShedReason) {
        self.0.shadow_shed[reason.index()].fetch_add(1, Relaxed);
    }
}

impl Drop for InFlightCount {
    #[inline]
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}
