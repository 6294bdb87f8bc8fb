//! What all front ends of a process share.

use crate::health::Health;
use crate::metrics::Metrics;
use crate::storage::{Storage, StorageError};
use crate::tiers::TierCache;
use arc_swap::{ArcSwap, Guard};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tollgate::policy::Compiled;
use tollgate::{Gate, ProcessClock, Setup, StoreError};
use tollgate_core::header::Profile;
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_policy::settings::{Settings, TierSource};

/// The engine that a node runs, over whichever store its file names.
pub type Engine = Gate<Storage>;

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
    tiers: TierCache,
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

/// Why there is no node.
#[derive(Debug)]
#[non_exhaustive]
pub enum NodeError {
    /// The limits do not make a policy.
    Policy(InvalidPolicy),
    /// The store cannot be used as the file says.
    Store(StorageError),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NodeError {}

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
    /// When the limits do not make a policy, or the store cannot be used as the file says.
    pub fn new(compiled: Compiled, setup: Setup) -> Result<Self, NodeError> {
        Self::beside(Path::new(""), compiled, setup)
    }

    /// The same, with the files that the settings name in this folder.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy, or the store cannot be used as the file says.
    pub fn beside(folder: &Path, compiled: Compiled, setup: Setup) -> Result<Self, NodeError> {
        let store = &compiled.settings.store;
        let storage = Storage::new(store, folder, |name| std::env::var_os(name));
        let gate = Gate::new(setup, storage.map_err(NodeError::Store)?);
        let mut gate = gate.map_err(NodeError::Policy)?;
        if let Some(deny_cache) = Storage::deny_cache(store) {
            gate = gate.with_deny_cache(deny_cache);
        }
        Ok(Self {
            gate,
            clock: ProcessClock,
            metrics: Metrics::default(),
            health: Health::default(),
            tiers: TierCache::default(),
            conduct: ArcSwap::from_pointee(Conduct::new(compiled.settings)),
        })
    }

    /// How to answer.
    pub fn conduct(&self) -> Guard<Arc<Conduct>> {
        self.conduct.load()
    }

    /// The tier that a hash in Redis gives whoever the facts name; `None` without such a hash, and for those it does not know.
    pub async fn tier(&self, facts: &Facts<'_>, now_us: u64) -> Option<Arc<str>> {
        let storage = self.gate.store();
        if let Storage::Memory(_) = storage {
            return None;
        }
        let conduct = self.conduct.load_full();
        let Some(TierSource::Redis { hash, by }) = &conduct.settings.tiers.source else {
            return None;
        };
        let who = facts.get(by)?.into_owned();
        let failed = |error: &StoreError| self.metrics.store_error(error.kind);
        self.tiers.tier(storage, hash, &who, now_us, failed).await
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
