//! The store that the file names: memory, or Redis shared with other nodes.

mod monitor;
mod observer;
mod probe;
mod redis;

pub(crate) use monitor::monitor;
pub use probe::{ProbeError, probe};
pub use redis::RedisStorage;
pub use tollgate::store::redis::{LeaseStats, ServerReport};

use crate::config::SecretError;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tollgate::engine::DenyCache;
use tollgate::store::redis::{RedisStore, UndecidedRequests};
use tollgate::store::{
    Answers, Charge, EndedReservation, LeaseSettings, LedgerReport, NewReservation, OpenOutcome,
    ParamsId, Settlement, StateKey, StoreCall, memory,
};
use tollgate::store::{LeaseStore, ReservationStore, Store, StoreReply};
use tollgate::{MemoryStore, StoreError};
use tollgate_core::{LimitParams, LimitState};
use tollgate_policy::settings;
use tollgate_store::{ProcessClock, StoreErrorKind};

/// The store that a file names.
#[derive(Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a process has one, and memory should not be behind a pointer"
)]
pub enum Storage {
    /// The memory of this process.
    Memory(MemoryStore),
    /// Redis or Valkey.
    Redis(Box<RedisStorage>),
}

/// The settings of a store are unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A password is unusable.
    #[error("{0}")]
    Secret(SecretError),
    /// The settings are invalid.
    #[error("`store.redis`: {0}")]
    Invalid(Box<str>),
    /// A file with certificates cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// The system has no thread or descriptor left.
    #[error("cannot start the store's thread: {0}")]
    System(io::Error),
}

impl Storage {
    /// Opens the store of `settings`. Relative paths start in `beside`. Redis need not be up yet.
    ///
    /// # Errors
    ///
    /// When a secret or a file is missing, or the system has no thread left.
    pub fn new(
        settings: &settings::Store,
        beside: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, StorageError> {
        match settings {
            settings::Store::Redis(settings) => RedisStorage::start(settings, beside, variable)
                .map(|remote| Self::Redis(Box::new(remote))),
            settings::Store::Memory { max_bytes } => {
                let options = memory::MemoryOptions::default().max_bytes(*max_bytes);
                Ok(Self::Memory(MemoryStore::new(options)))
            }
            _ => Err(StorageError::Invalid("this version does not know the store".into())),
        }
    }

    /// Gives the calling worker its own connections to Redis.
    pub(crate) fn use_worker_connections(&self) {
        self.remote().inspect(|remote| remote.store.attach_thread(remote.connections_per_worker));
    }

    /// The deny cache; `None` for memory, which needs no call.
    pub fn deny_cache(settings: &settings::Store) -> Option<DenyCache> {
        match settings {
            settings::Store::Redis(redis) if redis.deny_cache_entries > 0 => {
                let entries = redis.deny_cache_entries as usize;
                Some(DenyCache::new(entries, redis.deny_cache_max_age))
            }
            _ => None,
        }
    }

    /// The Redis store, if it is in use.
    pub(crate) fn redis(&self) -> Option<&RedisStore> {
        self.remote().map(|remote| &remote.store)
    }

    fn remote(&self) -> Option<&RedisStorage> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => Some(remote),
        }
    }

    /// Whether the store is a Redis cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.remote().is_some_and(|remote| remote.store.is_cluster())
    }

    /// Whether the circuit breaker of a server is open.
    pub fn is_breaker_open(&self) -> bool {
        self.remote().is_some_and(|remote| remote.store.is_breaker_open())
    }

    /// Failed attempts to connect while a circuit breaker is open, by kind.
    pub fn probe_failures(&self) -> Vec<(StoreErrorKind, u64)> {
        self.remote().map(|remote| remote.observer.probe_failures()).unwrap_or_default()
    }

    /// Clock jumps of the servers.
    pub fn clock_leaps(&self) -> u64 {
        self.remote().map_or(0, |remote| remote.observer.clock_leaps())
    }

    /// Counters of leases.
    pub fn leases(&self) -> LeaseStats {
        self.remote().map(|remote| remote.store.lease_stats()).unwrap_or_default()
    }

    /// Returns the units of leases, within the time. Must not be called on a thread with a runtime.
    pub(crate) fn release_leases(&self, within: Duration) {
        self.remote().inspect(|remote| remote.release_leases(within));
    }

    /// The error that opened a circuit breaker, if one is open.
    pub(crate) fn outage(&self) -> Option<StoreErrorKind> {
        self.remote()?.observer.last_failure()
    }

    /// The number of panicked and restarted tasks.
    pub(crate) fn task_restarts(&self) -> usize {
        self.remote().map_or(0, |remote| remote.store.status().task_restarts)
    }

    /// The number of failures in a row that opens a circuit breaker.
    pub(crate) fn breaker_errors(&self) -> u32 {
        self.remote().map_or(0, |remote| remote.breaker_errors)
    }

    /// The value of the first of these fields that a hash in Redis has.
    pub(crate) async fn first_field(
        &self,
        hash: &str,
        fields: &[Cow<'_, str>],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(remote) = self.remote() else { return Ok(None) };
        remote.store.first_field(hash, fields).await
    }

    /// A report on Redis; `None` for memory. `leases`: whether limits will be leased.
    ///
    /// # Errors
    ///
    /// When Redis does not answer in time.
    pub async fn probe(&self, leases: bool) -> Option<Result<ServerReport, StoreError>> {
        Some(self.remote()?.store.probe(leases).await)
    }

    /// The memory store, if it is in use.
    pub fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(memory) => Some(memory),
            Self::Redis(_) => None,
        }
    }
}

impl Store for Storage {
    type Undecided = UndecidedRequests;

    #[inline]
    fn begin(
        &self,
        now_us: u64,
        call: StoreCall<'_>,
        answers: &mut Answers,
    ) -> Option<UndecidedRequests> {
        match self {
            Self::Memory(memory) => memory.begin(now_us, call, answers).map(|never| match never {}),
            Self::Redis(remote) => remote.store.begin(now_us, call, answers),
        }
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        rest: UndecidedRequests,
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        let Self::Redis(remote) = self else { return Ok(()) };
        // The lookup of a tier may have used part of the deadline.
        let spent_us = ProcessClock.now_us().saturating_sub(now_us);
        let rest = rest.after(Duration::from_micros(spent_us));
        remote.store.finish(now_us, call, rest, answers).await
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        match self {
            Self::Memory(memory) => memory.state_key(charge),
            Self::Redis(remote) => remote.store.state_key(charge),
        }
    }

    fn answers_at_once(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    fn is_shared(&self) -> bool {
        matches!(self, Self::Redis(_))
    }

    fn register_params(&self, params: &LimitParams) -> ParamsId {
        match self {
            Self::Memory(memory) => memory.register_params(params),
            Self::Redis(remote) => remote.store.register_params(params),
        }
    }
}

impl ReservationStore for Storage {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: NewReservation<'a>,
    ) -> StoreReply<'a, Result<OpenOutcome, StoreError>, UndecidedRequests> {
        match self {
            Self::Memory(memory) => StoreReply::Now(memory.open_reservation(now_us, opening).now()),
            Self::Redis(remote) => remote.store.open_reservation(now_us, opening),
        }
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> StoreReply<'a, Result<Option<EndedReservation>, StoreError>, UndecidedRequests> {
        match self {
            Self::Memory(memory) => {
                StoreReply::Now(memory.end_reservation(now_us, id, end, plan).now())
            }
            Self::Redis(remote) => remote.store.end_reservation(now_us, id, end, plan),
        }
    }
}

impl LeaseStore for Storage {
    fn register_leased(&self, params: &LimitParams, leasing: &LeaseSettings) -> Option<ParamsId> {
        self.remote()?.store.register_leased(params, leasing)
    }

    async fn read_state<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LimitState>, StoreError> {
        match self {
            Self::Memory(memory) => memory.read_state(charge).await,
            Self::Redis(remote) => remote.store.read_state(charge).await,
        }
    }

    async fn lease_report<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        let Some(remote) = self.remote() else { return Ok(None) };
        remote.store.lease_report(charge).await
    }
}

#[cfg(test)]
mod tests;
