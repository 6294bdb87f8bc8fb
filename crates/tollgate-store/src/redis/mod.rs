//! State in Redis or Valkey, shared by many processes.
//!
//! A request is decided inside Redis by one script, all-or-nothing, at the server's own time.
//! Requests that wait at the same moment share a call. The script decides with Lua mirrors of the
//! algorithms, and the rows are worked out on this side from what it read.
//!
//! A call that fails is answered with an error, within its deadline, and never made again, because
//! a server that did not answer may have decided all the same. The exceptions are what a server
//! says when it did nothing: that it lacks the script, became a replica, or that a slot is
//! elsewhere.

mod adjust;
mod batch;
mod client;
mod cluster;
mod decide;
mod key;
mod lease;
mod observer;
mod options;
mod probe;
mod reservation;
mod script;
mod sentinel;
mod status;

pub use client::endpoint::{Endpoint, Tls};
pub use decide::UndecidedRequests;
pub use lease::{LeaseStats, lease_reply, lease_script};
pub use observer::Observer;
pub use options::{BootClock, RedisOptions};
pub use probe::ServerReport;
pub use status::Status;

use crate::{
    Adjustment, Answer, Answers, Change, Charge, EndedReservation, LeaseSettings, LeaseStore,
    LedgerReport, NewReservation, OpenOutcome, ParamsId, ReservationStore, Settlement, StateKey,
    Store, StoreCall, StoreError, StoreErrorKind, StoreReply,
};
use adjust::ChangeBatch;
use batch::NamedCharge;
use batch::reply::AdjustReply;
use client::Servers;
use cluster::slot_of;
use key::KeyNamer;
use lease::Leases;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tollgate_core::LimitParams;

/// Redis or Valkey as a store: one server, the one that sentinels name, or a cluster.
#[derive(Debug)]
pub struct RedisStore {
    namer: Arc<KeyNamer>,
    servers: Arc<Servers>,
    leases: Arc<Leases>,
    options: Arc<RedisOptions>,
}

impl RedisStore {
    /// A store on the servers of `endpoint`. It connects in the background, on the runtime that
    /// this is called in, and again whenever a connection is lost; until then every call fails, at
    /// its deadline at the latest. An error means that certificates cannot be read.
    pub fn open(endpoint: &Endpoint, options: RedisOptions) -> Result<Self, StoreError> {
        let password = endpoint.password.as_deref().unwrap_or_default();
        let secret = match options.secret.as_slice() {
            [] => key::secret(password, &options.prefix),
            given => given.to_vec(),
        };
        let namer = Arc::new(KeyNamer::new(&options.prefix, &secret));
        let options = Arc::new(options);
        let servers = Arc::new(Servers::start(endpoint, &options, &namer)?);
        let leases = Arc::new(Leases::new(&namer, options.boot_clock.clone()));
        Ok(Self { namer, servers, leases, options })
    }

    /// Gives the calling thread connections of its own to every server, so that what is asked on it
    /// need not wake another thread. They live on the runtime that this is called in, which is to
    /// be of this thread alone; until they are up, and after it has ended, the store decides over
    /// those that all threads share.
    pub fn attach_thread(&self, connections: usize) {
        self.servers.attach_thread(connections);
    }

    /// How it is with the servers at the moment.
    pub fn status(&self) -> Status {
        self.servers.status()
    }

    /// Whether it is several servers that share the keys.
    pub fn is_cluster(&self) -> bool {
        self.servers.is_cluster()
    }

    /// Whether a server is left alone because it failed.
    pub fn is_breaker_open(&self) -> bool {
        self.servers.is_breaker_open()
    }

    /// What leases came to.
    pub fn lease_stats(&self) -> LeaseStats {
        self.leases.stats()
    }

    /// Returns what leases hold, as far as the store can be told within the time, and takes no
    /// more: for a process that is about to end. Whatever is not returned is lost until its window
    /// ends, or until time has returned it.
    pub async fn release_leases(&self, within: Duration) {
        let _ = timeout(within, self.leases.release(&self.servers)).await;
    }

    /// Applies changes, those of one slot together, and answers with the rows in their order.
    async fn apply_changes(
        &self,
        now_us: Option<u64>,
        lines: &[(NamedCharge, Change)],
    ) -> Result<Vec<Answer>, StoreError> {
        let slots = self.servers.group_by_slot(lines.iter().map(|(line, _)| line.name.as_slice()));
        let one = |(slot, places): &(u16, Vec<usize>)| {
            let slot = *slot;
            let picked: Vec<_> =
                places.iter().map(|place| (&lines[*place].0, &lines[*place].1)).collect();
            let changes = ChangeBatch::new(picked.iter().copied());
            async move {
                let program = changes.program();
                let value =
                    self.servers.call(slot, &script::ADJUST, &changes.tables, program, now_us);
                adjust::rows(picked, &AdjustReply::read(value.await?)?)
            }
        };
        let all = futures_util::future::try_join_all(slots.iter().map(one));
        let rows = all.await?;
        let places = slots.iter().flat_map(|(_, places)| places);
        let mut placed: Vec<_> = places.zip(rows.into_iter().flatten()).collect();
        placed.sort_by_key(|(place, _)| **place);
        Ok(placed.into_iter().map(|(_, row)| row).collect())
    }

    async fn adjust(
        &self,
        now_us: u64,
        adjustments: &[Adjustment<'_>],
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let called_us = now_us;
        let now_us = self.options.script_time(now_us);
        let change = |change| adjust::to_server_time(change, called_us);
        let name =
            |one: &Adjustment<'_>| (self.named_charge(&one.charge, called_us), change(one.change));
        let lines: Vec<_> = adjustments.iter().map(name).collect();
        let rows = self.with_deadline(self.apply_changes(now_us, &lines)).await?;
        for one in adjustments {
            let surrender = matches!(one.change, Change::Block { .. });
            self.leases.limit_changed(one.charge.limit, one.charge.key, surrender);
        }
        rows.into_iter().for_each(|row| answers.push(row));
        answers.finish(true);
        Ok(())
    }

    async fn reset(&self, limit: u64, key: &[u8]) -> Result<(), StoreError> {
        let names = self.namer.state_keys(limit, key);
        // Their tag is the same, and so their slot.
        let slot = names.first().map_or(0, |name| slot_of(name));
        match self.leases.is_enabled() {
            true => self.with_deadline(self.clear(slot, &names)).await?,
            false => self.with_deadline(self.servers.unlink(slot, names)).await?,
        }
        self.leases.limit_changed(limit, key, true);
        Ok(())
    }

    async fn with_deadline<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.with_deadline_after(Duration::ZERO, work).await
    }

    /// The same where a part of the deadline is gone.
    async fn with_deadline_after<T>(
        &self,
        spent: Duration,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let late = |_| Err(StoreError::new(StoreErrorKind::Timeout, ""));
        let left = self.options.deadline.saturating_sub(spent);
        timeout(left, work).await.unwrap_or_else(late)
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.leases.stop();
        self.servers.stop();
    }
}

impl Store for RedisStore {
    type Undecided = UndecidedRequests;

    /// Leases decide here; all else is left.
    #[inline]
    fn begin(
        &self,
        _: u64,
        call: StoreCall<'_>,
        answers: &mut Answers,
    ) -> Option<UndecidedRequests> {
        answers.clear();
        match call {
            StoreCall::Decide(requests) => self.decide_locally(requests, answers),
            StoreCall::Adjust(_) | StoreCall::Reset { .. } => Some(UndecidedRequests::default()),
        }
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        rest: UndecidedRequests,
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        match call {
            StoreCall::Decide(requests) => {
                self.decide_in_store(now_us, requests, rest, answers).await
            }
            StoreCall::Adjust(adjustments) => self.adjust(now_us, adjustments, answers).await,
            StoreCall::Reset { limit, key } => self.reset(limit, key).await,
        }
    }

    fn state_key(&self, charge: &Charge<'_>) -> StateKey {
        StateKey::new(self.namer.state_key(charge.limit, charge.key, charge.params))
    }

    fn register_params(&self, _: &LimitParams) -> ParamsId {
        ParamsId::default()
    }
}

impl ReservationStore for RedisStore {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: NewReservation<'a>,
    ) -> StoreReply<'a, Result<OpenOutcome, StoreError>, UndecidedRequests> {
        let opening = async move { self.open_record(now_us, &opening).await };
        StoreReply::later(UndecidedRequests::default(), self.with_deadline(opening))
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> StoreReply<'a, Result<Option<EndedReservation>, StoreError>, UndecidedRequests> {
        let ending = async move {
            let ended = self.with_deadline(self.end_record(now_us, id, end, &plan)).await?;
            let places = ended.iter().flat_map(|ended| &ended.state_keys);
            places.for_each(|place| self.leases.limit_changed_by_name(place.as_bytes()));
            Ok(ended)
        };
        StoreReply::later(UndecidedRequests::default(), ending)
    }
}

impl LeaseStore for RedisStore {
    async fn lease_report<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        match self.leases.leased_limit(charge.params_id) {
            Some(_) => self.read_ledger(charge).await,
            None => Ok(None),
        }
    }

    fn register_leased(&self, params: &LimitParams, leasing: &LeaseSettings) -> Option<ParamsId> {
        // A window that the caller's clock names is not one that a lease can end with.
        let leasable = !self.options.caller_time;
        leasable.then(|| self.leases.register(&self.servers, params, leasing)).flatten()
    }
}
