//! Where a node counts: in this process, or in Redis with others.

mod background;
mod observer;
mod probe;
mod redis;
mod watch;

pub use probe::{ProbeError, probe};
pub use redis::Remote;
pub use tollgate::store::redis::{LeaseStats, Report};
pub(crate) use watch::watch;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tollgate::store::redis::Rest;
use tollgate::store::{
    Answers, Call, Charge, Ended, Leasing, LedgerReport, Opened, Opening, Place, Settlement,
    Ticket, memory,
};
use tollgate::{DenyCache, LeaseStore, MemoryStore, Reply, ReservationStore, Store, StoreError};
use tollgate_core::Numbers;
use tollgate_policy::settings;
use tollgate_store::{ProcessClock, StoreErrorKind};

/// The store that a file names.
#[derive(Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one in a process, and memory is not to be behind a pointer"
)]
pub enum Storage {
    /// In this process.
    Memory(MemoryStore),
    /// In Redis or Valkey.
    Redis(Box<Remote>),
}

/// A store that cannot be used as the file says.
#[derive(Debug)]
#[non_exhaustive]
pub enum StorageError {
    /// The environment variable with the password is not set, empty or not text.
    Unset {
        /// The field that names it.
        field: &'static str,
        /// The variable.
        variable: Box<str>,
    },
    /// What the file says about the store does not lead anywhere.
    Invalid(Box<str>),
    /// A file with certificates is not to be had.
    Unreadable {
        /// Which one.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// This version cannot do that.
    Unavailable(&'static str),
    /// The system has no thread or descriptor left.
    System(io::Error),
}

impl Storage {
    /// What `settings` say, with the files that they name in `beside`. A store elsewhere need not be there yet.
    ///
    /// # Errors
    ///
    /// When a secret is not where the file says, or the system is out of something.
    pub fn new(
        settings: &settings::Store,
        beside: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, StorageError> {
        match settings {
            settings::Store::Redis(settings) => Remote::start(settings, beside, variable)
                .map(|remote| Self::Redis(Box::new(remote))),
            settings::Store::Memory { max_bytes } => {
                let options = memory::Options::default().max_bytes(*max_bytes);
                Ok(Self::Memory(MemoryStore::new(options)))
            }
            _ => Err(StorageError::Unavailable("store")),
        }
    }

    /// Spares the calling worker, which has a runtime of its own, the way over another thread to a store elsewhere.
    pub(crate) fn settle_here(&self) {
        self.remote().inspect(|remote| remote.store.settle_here(remote.connections));
    }

    /// The refusals that a node remembers, where asking again would cost a call.
    pub fn deny_cache(settings: &settings::Store) -> Option<DenyCache> {
        match settings {
            settings::Store::Redis(redis) if redis.deny_cache_entries > 0 => {
                let entries = redis.deny_cache_entries as usize;
                Some(DenyCache::new(entries, redis.deny_cache_max_age))
            }
            _ => None,
        }
    }

    /// The store elsewhere, where it is the one.
    pub(crate) fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => Some(remote),
        }
    }

    /// Whether it is several servers that share the keys.
    pub(crate) fn is_cluster(&self) -> bool {
        self.remote().is_some_and(|remote| remote.store.is_cluster())
    }

    /// Whether the circuit breaker of a server is open.
    pub fn is_breaker_open(&self) -> bool {
        self.remote().is_some_and(|remote| remote.store.is_open())
    }

    /// Failures that no caller saw, by kind: of attempts to reach a server whose circuit breaker is
    /// open.
    pub fn failures(&self) -> Vec<(StoreErrorKind, u64)> {
        self.remote().map(|remote| remote.notices.failures()).unwrap_or_default()
    }

    /// Counters of leases; nothing for a store in this process.
    pub fn leases(&self) -> LeaseStats {
        self.remote().map(|remote| remote.store.lease_stats()).unwrap_or_default()
    }

    /// Returns what leases hold, within the time; afterwards nothing more is taken in advance. Must not be called on a runtime's own thread.
    pub(crate) fn release(&self, within: Duration) {
        self.remote().inspect(|remote| remote.release(within));
    }

    /// Why the circuit breaker of a server is open, if one is.
    pub(crate) fn outage(&self) -> Option<StoreErrorKind> {
        self.remote()?.notices.last()
    }

    /// How many tasks of it died and were started again.
    pub(crate) fn died(&self) -> usize {
        self.remote().map_or(0, |remote| remote.store.status().died)
    }

    /// After how many failures in a row a circuit breaker opens.
    pub(crate) fn breaker_errors(&self) -> u32 {
        self.remote().map_or(0, |remote| remote.breaker_errors)
    }

    /// The first of these fields that a hash in Redis has.
    pub(crate) async fn first_field(
        &self,
        hash: &str,
        fields: &[Cow<'_, str>],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Redis(remote) => remote.store.first_field(hash, fields).await,
        }
    }

    /// What a store elsewhere says of itself; `None` for one in this process. `leases` says that limits will be leased.
    ///
    /// # Errors
    ///
    /// When it could not say in time.
    pub async fn probe(&self, leases: bool) -> Option<Result<Report, StoreError>> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => Some(remote.store.probe(leases).await),
        }
    }

    /// The memory store, where it is the one.
    pub fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(memory) => Some(memory),
            Self::Redis(_) => None,
        }
    }
}

impl Store for Storage {
    type Rest = Rest;

    #[inline]
    fn begin(&self, now_us: u64, call: Call<'_>, answers: &mut Answers) -> Option<Rest> {
        match self {
            Self::Memory(memory) => memory.begin(now_us, call, answers).map(|never| match never {}),
            Self::Redis(remote) => remote.store.begin(now_us, call, answers),
        }
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: Call<'a>,
        rest: Rest,
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        let Self::Redis(remote) = self else { return Ok(()) };
        // Since the request was read, its tier may have been looked up.
        let spent_us = ProcessClock.now_us().saturating_sub(now_us);
        let rest = rest.after(Duration::from_micros(spent_us));
        remote.store.finish(now_us, call, rest, answers).await
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        match self {
            Self::Memory(memory) => memory.place(charge),
            Self::Redis(remote) => remote.store.place(charge),
        }
    }

    fn is_shared(&self) -> bool {
        matches!(self, Self::Redis(_))
    }

    fn enroll(&self, numbers: &Numbers) -> Ticket {
        match self {
            Self::Memory(memory) => memory.enroll(numbers),
            Self::Redis(remote) => remote.store.enroll(numbers),
        }
    }
}

impl ReservationStore for Storage {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: Opening<'a>,
    ) -> Reply<'a, Result<Opened, StoreError>, Rest> {
        match self {
            Self::Memory(memory) => Reply::Now(memory.open_reservation(now_us, opening).now()),
            Self::Redis(remote) => remote.store.open_reservation(now_us, opening),
        }
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> Reply<'a, Result<Option<Ended>, StoreError>, Rest> {
        match self {
            Self::Memory(memory) => Reply::Now(memory.end_reservation(now_us, id, end, plan).now()),
            Self::Redis(remote) => remote.store.end_reservation(now_us, id, end, plan),
        }
    }
}

impl LeaseStore for Storage {
    fn enroll_leased(&self, numbers: &Numbers, leasing: &Leasing) -> Option<Ticket> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => remote.store.enroll_leased(numbers, leasing),
        }
    }

    async fn ledger<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Redis(remote) => remote.store.ledger(charge).await,
        }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset { field, variable } => write!(
                f,
                "`{field}` is said to be in the environment variable {variable}, which is not set; set it, or change the field"
            ),
            Self::Invalid(why) => write!(f, "`store.redis`: {why}"),
            Self::Unreadable { file, error } => {
                write!(f, "cannot read {}: {error}", file.display())
            }
            Self::Unavailable(field) => {
                write!(f, "`{field}` is not available in this build yet; remove it to use the rest")
            }
            Self::System(error) => write!(f, "cannot start the store's thread: {error}"),
        }
    }
}

impl std::error::Error for StorageError {}

#[cfg(test)]
mod tests;
