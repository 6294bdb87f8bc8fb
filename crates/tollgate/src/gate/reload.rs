//! Reload: replaces the rules while requests are decided; also tiers and modes.

use super::Gate;
use crate::engine::{Rules, Setup};
use crate::rules::{ByName, Counters, Counts, INLINE};
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use tollgate_policy::TierMap;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_store::LeaseStore;

/// The inputs of the rules.
#[derive(Debug)]
pub(super) struct RulesBuilder {
    setup: Setup,
    /// Modes that an operator set. A reload keeps them.
    modes: ByName<Mode>,
    /// Also the counters of limits that are gone: a counter never goes back.
    counters: ByName<Arc<Counters>>,
    generation: u64,
}

/// A limit's mode before and after an operator changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeChange {
    /// The mode before.
    pub before: Mode,
    /// The mode now.
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
    pub fn replace(&self, setup: Setup) -> Result<(), InvalidPolicy> {
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

    /// Overrides a limit's mode until it is cleared with `None`. A reload keeps the override.
    ///
    /// # Errors
    ///
    /// If neither a limit nor an override has this name.
    pub fn set_mode(&self, limit: &str, mode: Option<Mode>) -> Result<ModeChange, UnknownLimit> {
        let mut builder = self.builder();
        let limits = builder.setup.all_limits();
        let named = limits.iter().find(|(one, _)| *one.name == *limit);
        let configured = match (named, builder.modes.contains_key(limit)) {
            (Some((one, _)), _) => one.mode,
            // The limit is gone, so the override can only be cleared.
            (None, true) if mode.is_none() => Mode::default(),
            (None, _) => return Err(UnknownLimit(limit.into())),
        };
        let before = match mode {
            Some(mode) => builder.modes.insert(limit.into(), mode),
            None => builder.modes.remove(limit),
        };
        let change =
            ModeChange { before: before.unwrap_or(configured), after: mode.unwrap_or(configured) };
        // The same limits compiled before, and a mode cannot change that.
        let _ = self.rebuild(&mut builder);
        Ok(change)
    }

    /// The modes of the file, in file order, without overrides.
    pub fn configured_modes(&self) -> Vec<Mode> {
        self.builder().setup.all_limits().iter().map(|(limit, _)| limit.mode).collect()
    }

    /// The overridden modes, by the name of their limit.
    pub fn overrides(&self) -> Vec<(Box<str>, Mode)> {
        self.builder().modes.iter().map(|(name, mode)| (name.clone(), *mode)).collect()
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
    fn builder(&self) -> MutexGuard<'_, RulesBuilder> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
