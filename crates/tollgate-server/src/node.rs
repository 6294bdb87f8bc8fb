//! What all front ends of a process share.

use crate::health::Health;
use crate::metrics::Metrics;
use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;
use tollgate::policy::Compiled;
use tollgate::{Gate, MemoryStore, ProcessClock, Setup};
use tollgate_core::header::Profile;
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
}

/// How front ends answer, by the file in force.
#[derive(Debug)]
#[non_exhaustive]
pub struct Conduct {
    /// Everything in the file but its limits.
    pub settings: Settings,
    /// The header profiles that every answer carries.
    pub profiles: Vec<Profile>,
}

impl Conduct {
    /// By what a file says.
    pub fn new(settings: Settings) -> Self {
        let profiles = settings.headers.iter().filter_map(|name| Profile::parse(name)).collect();
        Self { settings, profiles }
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
        })
    }

    /// How to answer.
    pub fn conduct(&self) -> Guard<Arc<Conduct>> {
        self.conduct.load()
    }

    /// Puts another file in force: its limits, then how to answer.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy; then all stays as it was.
    pub fn replace(&self, compiled: Compiled, setup: Setup) -> Result<(), InvalidPolicy> {
        self.gate.replace(setup)?;
        self.conduct.store(Arc::new(Conduct::new(compiled.settings)));
        Ok(())
    }
}
