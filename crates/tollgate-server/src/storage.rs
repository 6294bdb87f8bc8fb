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
use tollgate::store::{
    Adjustment, Answers, Charge, Ended, Leasing, LedgerReport, Opened, Opening, Place, Plan,
    Request, Ticket, memory,
};
use tollgate::{DenyCache, MemoryStore, Store, StoreError};
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
        if let Self::Redis(remote) = self {
            remote.store.settle_here(remote.connections);
        }
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

    /// Whether it is several servers that share the keys.
    pub(crate) fn is_cluster(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Redis(remote) => remote.store.is_cluster(),
        }
    }

    /// Whether a server of it is left alone because it failed.
    pub fn is_breaker_open(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Redis(remote) => remote.store.is_open(),
        }
    }

    /// Failures that no caller saw, by kind: of attempts to reach a store that is left alone.
    pub fn failures(&self) -> Vec<(StoreErrorKind, u64)> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Redis(remote) => remote.notices.failures(),
        }
    }

    /// What leases came to; nothing for a store in this process.
    pub fn leases(&self) -> LeaseStats {
        match self {
            Self::Memory(_) => LeaseStats::default(),
            Self::Redis(remote) => remote.store.lease_stats(),
        }
    }

    /// Returns what leases hold, within the time; afterwards nothing more is taken in advance. Must not be called on a runtime's own thread.
    pub(crate) fn release(&self, within: Duration) {
        if let Self::Redis(remote) = self {
            remote.release(within);
        }
    }

    /// Why a server of it is left alone, if one is.
    pub(crate) fn outage(&self) -> Option<StoreErrorKind> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => remote.notices.last(),
        }
    }

    /// How many tasks of it died and were started again.
    pub(crate) fn died(&self) -> usize {
        match self {
            Self::Memory(_) => 0,
            Self::Redis(remote) => remote.store.status().died,
        }
    }

    /// After how many failures in a row a store elsewhere is left alone.
    pub(crate) fn breaker_errors(&self) -> u32 {
        match self {
            Self::Memory(_) => 0,
            Self::Redis(remote) => remote.breaker_errors,
        }
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

/// The memory store answers at once, as it does alone, and so do leases; what waits for Redis waits in a box, so that the future of a decision
/// stays small.
impl Store for Storage {
    async fn decide<'a>(
        &'a self,
        now_us: u64,
        requests: &'a [Request<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.decide_now(now_us, requests, answers);
                Ok(())
            }
            Self::Redis(remote) => match remote.store.decide_locally(requests, answers) {
                None => Ok(()),
                Some(rest) => {
                    // Since the request was read, its tier may have been looked up.
                    let spent_us = ProcessClock.now_us().saturating_sub(now_us);
                    let rest = rest.after(Duration::from_micros(spent_us));
                    Box::pin(remote.store.decide_rest(now_us, requests, rest, answers)).await
                }
            },
        }
    }

    async fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: &'a [Adjustment<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.adjust_now(now_us, adjustments, answers);
                Ok(())
            }
            Self::Redis(remote) => {
                Box::pin(remote.store.adjust(now_us, adjustments, answers)).await
            }
        }
    }

    async fn reset<'a>(&'a self, limit: u64, key: &'a [u8]) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.reset_now(limit, key);
                Ok(())
            }
            Self::Redis(remote) => Box::pin(remote.store.reset(limit, key)).await,
        }
    }

    async fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: &'a Opening<'a>,
    ) -> Result<Opened, StoreError> {
        match self {
            Self::Memory(memory) => Ok(memory.open_now(now_us, opening)),
            Self::Redis(remote) => Box::pin(remote.store.open_reservation(now_us, opening)).await,
        }
    }

    async fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: &'a Plan<'a>,
        answers: &'a mut Answers,
    ) -> Result<Option<Ended>, StoreError> {
        match self {
            Self::Memory(memory) => memory.end_now(now_us, id, end, plan, answers),
            Self::Redis(remote) => {
                Box::pin(remote.store.end_reservation(now_us, id, end, plan, answers)).await
            }
        }
    }

    async fn ledger<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Redis(remote) => Box::pin(remote.store.ledger(charge)).await,
        }
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

    fn enroll_leased(&self, numbers: &Numbers, leasing: &Leasing) -> Option<Ticket> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => remote.store.enroll_leased(numbers, leasing),
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
