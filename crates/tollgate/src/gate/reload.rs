//! Reload: replaces the rules while requests are decided; also tiers and modes.

use super::Gate;
use crate::engine::{GateSetup, ModeOverride, Rules};
use crate::rules::{ByName, CandidateCounters, Counters, Counts, INLINE, ShedState};
use std::sync::{Arc, MutexGuard};
use tollgate_policy::TierMap;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_store::LeaseStore;

/// The inputs of the rules.
#[derive(Debug)]
pub(super) struct RulesBuilder {
    setup: GateSetup,
    /// Modes that operators set, the deciding ones last. A reload keeps them.
    overrides: Vec<ModeOverride>,
    /// Also the counters of limits that are gone: a counter never goes back.
    counters: ByName<Arc<Counters>>,
    pub(super) candidates: ByName<Arc<CandidateCounters>>,
    pub(super) shed: ShedState,
    generation: u64,
}

impl RulesBuilder {
    pub(super) fn new(
        setup: GateSetup,
        store: &impl LeaseStore,
    ) -> Result<(Self, Rules), InvalidPolicy> {
        let mut builder = Self {
            setup,
            overrides: Vec::new(),
            counters: ByName::new(),
            candidates: ByName::new(),
            shed: ShedState::default(),
            generation: 0,
        };
        let rules = builder.build(store)?;
        Ok((builder, rules))
    }

    fn build(&mut self, store: &impl LeaseStore) -> Result<Rules, InvalidPolicy> {
        let Self { setup, overrides, counters, candidates, shed, generation } = self;
        let next = *generation + 1;
        let rules = Rules::new(setup, overrides, counters, candidates, shed, store, next)?;
        *generation += 1;
        Ok(rules)
    }
}

impl<S: LeaseStore> Gate<S> {
    /// A gate with the same setup over another store, without counts.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn over<T: LeaseStore>(&self, store: T) -> Result<Gate<T>, InvalidPolicy> {
        Gate::new(self.builder().setup.clone(), store)
    }

    /// Replaces the setup. Requests in flight finish under the old rules. Counts, overridden modes
    /// and open reservations stay.
    ///
    /// # Errors
    ///
    /// If the limits do not compile to a policy. The old setup stays then.
    pub fn replace(&self, setup: GateSetup) -> Result<(), InvalidPolicy> {
        let mut builder = self.builder();
        let before = std::mem::replace(&mut builder.setup, setup);
        self.rebuild(&mut builder).inspect_err(|_| builder.setup = before)
    }

    /// Replaces the tier map, or removes it.
    ///
    /// # Errors
    ///
    /// If the attribute that the map looks up is one too many. The old map stays then.
    pub fn set_tiers(&self, tiers: Option<TierMap>) -> Result<(), InvalidPolicy> {
        let mut builder = self.builder();
        let before = std::mem::replace(&mut builder.setup.tiers, tiers.map(Arc::new));
        self.rebuild(&mut builder).inspect_err(|_| builder.setup.tiers = before)
    }

    /// Overrides modes, until other overrides replace these. A reload keeps them, also those of
    /// limits that the policy does not have at the moment. Of several for one limit the last one
    /// decides.
    pub fn set_overrides(&self, overrides: Vec<ModeOverride>) {
        let mut builder = self.builder();
        if builder.overrides != overrides {
            builder.overrides = overrides;
            // The same limits compiled before, and a mode cannot change that.
            let _ = self.rebuild(&mut builder);
        }
    }

    /// The modes of the file, in file order, without overrides.
    pub fn configured_modes(&self) -> Vec<Mode> {
        self.builder().setup.all_limits().iter().map(|(limit, _)| limit.mode).collect()
    }

    /// The overrides, the deciding ones last.
    pub fn overrides(&self) -> Vec<ModeOverride> {
        self.builder().overrides.clone()
    }

    /// The answers of each limit, by its name. A limit that a reload removes keeps its counts.
    /// Inline limits appear after their first request: Envoy's as `override`, those of Redis
    /// clients as `CL.THROTTLE`.
    pub fn counts(&self) -> Vec<(Box<str>, Counts)> {
        let builder = self.builder();
        let known = builder.counters.iter();
        let mut all: Vec<(Box<str>, Counts)> =
            known.map(|(name, counters)| (name.clone(), counters.read())).collect();
        for (name, counters) in INLINE.into_iter().zip(&self.inline) {
            let counts = counters.read();
            match all.iter_mut().find(|(known, _)| &**known == name) {
                _ if counts == Counts::default() => {}
                Some((_, known)) => known.add(&counts),
                None => all.push((name.into(), counts)),
            }
        }
        all
    }

    fn rebuild(&self, builder: &mut RulesBuilder) -> Result<(), InvalidPolicy> {
        self.rules.store(Arc::new(builder.build(&self.store)?));
        Ok(())
    }

    /// Safe after a panic: every change to the builder is a single assignment.
    pub(super) fn builder(&self) -> MutexGuard<'_, RulesBuilder> {
        crate::sync::lock(&self.builder)
    }
}
