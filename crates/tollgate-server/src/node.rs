//! What all front ends of a process share.

use crate::health::Health;
use crate::metrics::Metrics;
use arc_swap::{ArcSwap, Guard};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollgate::policy::Compiled;
use tollgate::{Gate, MemoryStore, ProcessClock, Setup};
use tollgate_policy::policy::InvalidPolicy;
use tollgate_policy::settings::{Settings, Store};
use tollgate_store::memory::Options;

/// The engine that a node runs, over whichever store its file names.
pub type Engine = Gate<MemoryStore>;

/// Everything a front end needs; one per process, shared by `Arc`.
#[derive(Debug)]
pub struct Node {
    /// Decides.
    pub gate: Engine,
    /// Says when. Read once for each request.
    pub clock: ProcessClock,
    /// Counts.
    pub metrics: Metrics,
    /// Says how the node is.
    pub health: Health,
    conduct: ArcSwap<Conduct>,
    /// The names of limits whose keys overflowed, by what the store called them under earlier files.
    overflowed: Mutex<BTreeMap<u64, Box<str>>>,
}

/// How the process behaves, by the file in force. What a decision's answer depends on is part of the rules instead, which
/// a request loads once.
#[derive(Debug)]
#[non_exhaustive]
pub struct Conduct {
    /// Everything in the file but its limits.
    pub settings: Settings,
}

impl Conduct {
    /// By what a file says.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }
}

impl Node {
    /// A node by what `compiled` says, with `setup`, which is of the same file and has what other files add to it.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy.
    pub fn new(compiled: Compiled, setup: Setup) -> Result<Self, InvalidPolicy> {
        let options = match compiled.settings.store {
            Store::Memory { max_bytes } => Options::default().max_bytes(max_bytes),
            _ => Options::default(),
        };
        Ok(Self {
            gate: Gate::new(setup, MemoryStore::new(options))?,
            clock: ProcessClock,
            metrics: Metrics::default(),
            health: Health::default(),
            conduct: ArcSwap::from_pointee(Conduct::new(compiled.settings)),
            overflowed: Mutex::default(),
        })
    }

    /// How to answer.
    pub fn conduct(&self) -> Guard<Arc<Conduct>> {
        self.conduct.load()
    }

    /// Decisions in cells that keys share, by limit: by the store's name for it and its own. A limit has several states where
    /// its tiers or earlier files gave it several periods.
    pub fn overflowed(&self) -> Vec<(u64, Box<str>, u64)> {
        let rules = self.gate.rules();
        let policy = rules.policy();
        let earlier = self.names();
        let name = |id: u64| {
            let variant = policy.numbers().iter().find(|variant| variant.id == id);
            let now = variant.map(|variant| policy.limits()[variant.limit].name.clone());
            now.or_else(|| earlier.get(&id).cloned())
        };
        let counts = self.gate.store().overflowed().into_iter();
        counts.filter_map(|(id, count)| Some((id, name(id)?, count))).collect()
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<u64, Box<str>>> {
        self.overflowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts another file in force: its limits, then how to answer.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy; then all stays as it was.
    pub fn replace(&self, compiled: Compiled, setup: Setup) -> Result<(), InvalidPolicy> {
        let overflowed = self.overflowed();
        self.gate.replace(setup)?;
        self.names().extend(overflowed.into_iter().map(|(id, name, _)| (id, name)));
        self.conduct.store(Arc::new(Conduct::new(compiled.settings)));
        Ok(())
    }
}
