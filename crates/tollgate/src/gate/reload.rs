//! Changing the rules while requests are decided: reloads, tiers, and the kill switch.

use super::Gate;
use crate::rules::{ByName, Counters, Counts, INLINE};
use crate::{Rules, Setup};
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use tollgate_policy::TierMap;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_store::LeaseStore;

/// What the rules are made from.
#[derive(Debug)]
pub(super) struct RulesBuilder {
    setup: Setup,
    /// Modes that an operator set; they outlive a reload.
    modes: ByName<Mode>,
    /// By the limits' names, those of limits that are gone included: a counter never goes back.
    counters: ByName<Arc<Counters>>,
    generation: u64,
}

/// A limit's mode before and after an operator changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeChange {
    /// The mode that was in effect.
    pub before: Mode,
    /// The mode that is.
    pub after: Mode,
}

/// No limit has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLimit(pub Box<str>);

impl fmt::Display for UnknownLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no limit is called `{}`", self.0)
    }
}

impl std::error::Error for UnknownLimit {}

impl RulesBuilder {
    pub(super) fn new(
        setup: Setup,
        store: &impl LeaseStore,
    ) -> Result<(Self, Rules), InvalidPolicy> {
        let modes = ByName::new();
        let mut counters = ByName::new();
        let rules = Rules::new(&setup, &modes, &mut counters, store, 1)?;
        Ok((Self { setup, modes, counters, generation: 1 }, rules))
    }

    fn build(&mut self, store: &impl LeaseStore) -> Result<Rules, InvalidPolicy> {
        let Self { setup, modes, counters, generation } = self;
        let rules = Rules::new(setup, modes, counters, store, *generation + 1)?;
        *generation += 1;
        Ok(rules)
    }
}

impl<S: LeaseStore> Gate<S> {
    /// Puts `setup` in force. Requests under way are finished by the old rules, all others are
    /// decided by the new; counts, overridden modes and open reservations stay.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy; then the old one stays.
    pub fn replace(&self, setup: Setup) -> Result<(), InvalidPolicy> {
        let mut wanted = self.builder();
        let before = std::mem::replace(&mut wanted.setup, setup);
        self.rebuild(&mut wanted).inspect_err(|_| wanted.setup = before)
    }

    /// Looks tiers up in another map, or no longer in any.
    ///
    /// # Errors
    ///
    /// When the attribute by which they are looked up is one too many; then the old map stays.
    pub fn set_tiers(&self, tiers: Option<TierMap>) -> Result<(), InvalidPolicy> {
        let mut wanted = self.builder();
        let before = std::mem::replace(&mut wanted.setup.tiers, tiers.map(Arc::new));
        self.rebuild(&mut wanted).inspect_err(|_| wanted.setup.tiers = before)
    }

    /// Overrides a limit's mode at once and until it is cleared with `None`, whatever a reload
    /// brings.
    ///
    /// # Errors
    ///
    /// When no limit has this name, in the policy or among the overridden.
    pub fn set_mode(&self, limit: &str, mode: Option<Mode>) -> Result<ModeChange, UnknownLimit> {
        let mut wanted = self.builder();
        let limits = wanted.setup.all_limits();
        let named = limits.iter().find(|(one, _)| *one.name == *limit);
        let configured = match (named, wanted.modes.contains_key(limit)) {
            (Some((one, _)), _) => one.mode,
            // Its limit is gone, so clearing it is all that can be done.
            (None, true) if mode.is_none() => Mode::default(),
            (None, _) => return Err(UnknownLimit(limit.into())),
        };
        let before = match mode {
            Some(mode) => wanted.modes.insert(limit.into(), mode),
            None => wanted.modes.remove(limit),
        };
        let change =
            ModeChange { before: before.unwrap_or(configured), after: mode.unwrap_or(configured) };
        // The same limits made a policy before, and a mode cannot change that.
        let _ = self.rebuild(&mut wanted);
        Ok(change)
    }

    /// The modes that the policy itself gives its limits, in file order, whatever overrides them.
    pub fn configured_modes(&self) -> Vec<Mode> {
        self.builder().setup.all_limits().iter().map(|(limit, _)| limit.mode).collect()
    }

    /// The modes that are overridden, by the limits' names.
    pub fn overrides(&self) -> Vec<(Box<str>, Mode)> {
        self.builder().modes.iter().map(|(name, mode)| (name.clone(), *mode)).collect()
    }

    /// How often each limit said what, by its name. A limit keeps its counts when a reload takes it
    /// away. Inline limits are there once there was one: Envoy's as `override`, those of Redis
    /// clients as `CL.THROTTLE`.
    pub fn counts(&self) -> Vec<(Box<str>, Counts)> {
        let wanted = self.builder();
        let known = wanted.counters.iter();
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

    fn rebuild(&self, wanted: &mut RulesBuilder) -> Result<(), InvalidPolicy> {
        let rules = wanted.build(&self.store)?;
        self.rules.store(Arc::new(rules));
        Ok(())
    }

    /// A panic elsewhere leaves it whole: every change to it is a single assignment.
    fn builder(&self) -> MutexGuard<'_, RulesBuilder> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
