//! The Redis store: state in Redis or Valkey, shared by many processes.
//!
//! One script decides a request inside Redis, all-or-nothing, at the server's own time. Requests
//! that wait at the same moment share a call. The script decides with Lua mirrors of the
//! algorithms. The rows are computed on this side, from the values that the script read.
//!
//! A failed call returns an error within its deadline. It is not repeated, because a server that
//! did not answer may have decided. It is repeated only if the server proves that it did nothing:
//! it lacks the script, became a replica, or does not have the slot.

mod adjust;
mod batch;
mod client;
mod cluster;
mod key;
mod lease;
mod node_report;
mod observer;
mod options;
mod probe;
mod reservation;
mod script;
mod sentinel;
mod shared_table;

pub use client::endpoint::{Endpoint, InvalidEndpoint, Tls};
pub use lease::{LeaseStats, lease_reply, lease_script};
pub use node_report::NodeReport;
pub use observer::{Observer, Status};
pub use options::{BootClock, RedisOptions};
pub use probe::ServerReport;
pub use shared_table::{SharedChange, SharedTable, SharedValue};

use crate::raw::clock::instant_after;
use crate::{
    Answers, BoxedReply, Charge, EndedReservation, LeaseSettings, LeaseStore, LedgerReport,
    NewReservation, OpenOutcome, ParamsId, Request, ReservationStore, Settlement, StateKey, Store,
    StoreCall, StoreError, StoreErrorKind, StoreReply,
};
use batch::DecideRequest;
use batch::queue::BATCH_REQUESTS_MAX;
use batch::rows::{StoredCell, bytes, invalid_reply, is_expiry_log, push_rows};
use batch::slot_returns::UnreadSlots;
use client::Servers;
use cluster::slot_of;
use key::KeyNamer;
use lease::{DecisionTimes, Leases};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tollgate_core::{LimitParams, LimitState};

/// A store on Redis or Valkey: one server, the primary that sentinels name, or a cluster.
#[derive(Debug)]
pub struct RedisStore {
    namer: Arc<KeyNamer>,
    servers: Arc<Servers>,
    leases: Arc<Leases>,
    options: Arc<RedisOptions>,
}

/// The requests of a batch that leases did not decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndecidedRequests {
    /// The index of the first one.
    first: usize,
    /// Whether the leases of the first request were tried and did not suffice.
    leases_tried: bool,
    /// The part of the deadline already spent.
    spent: Duration,
}

impl UndecidedRequests {
    /// Counts time that the request has already waited: all calls of a request share one deadline.
    #[must_use]
    pub fn after(self, spent: Duration) -> Self {
        Self { spent, ..self }
    }
}

impl RedisStore {
    /// Opens a store. It connects in the background, on the current runtime, and reconnects after a
    /// loss. Meanwhile calls fail, at the latest at their deadline. When the runtime ends, the
    /// connections end, and calls fail.
    ///
    /// # Errors
    ///
    /// If certificates cannot be read, or there is no current tokio runtime.
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

    /// [Opens](Self::open) a store on the server of a URL, with the default options. See
    /// [`Endpoint`] for the forms of URLs.
    ///
    /// # Errors
    ///
    /// If the URL is invalid, or there is no current tokio runtime.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let invalid =
            |why: InvalidEndpoint| StoreError::new(StoreErrorKind::Unreachable, why.to_string());
        Self::open(&url.parse().map_err(invalid)?, RedisOptions::default())
    }

    /// Gives the calling thread its own connections to every server, so that its requests wake no
    /// other thread. The current runtime must run on this thread alone. Until these connections are
    /// up, the thread's requests use the shared ones.
    pub fn attach_thread(&self, connections: usize) {
        self.servers.attach_thread(connections);
    }

    /// The state of the servers at the moment.
    pub fn status(&self) -> Status {
        self.servers.status()
    }

    /// Whether the servers are a cluster.
    pub fn is_cluster(&self) -> bool {
        self.servers.is_cluster()
    }

    /// Whether the circuit breaker of a server is open.
    pub fn is_breaker_open(&self) -> bool {
        self.servers.is_breaker_open()
    }

    /// Counters of leases.
    pub fn lease_stats(&self) -> LeaseStats {
        self.leases.stats()
    }

    /// Returns the units of all leases within `within`, and takes no more: for a process that is
    /// about to end. Units not returned are lost until their window ends or time refills them.
    pub async fn release_leases(&self, within: Duration) {
        let released: BoxedReply<'_, ()> = Box::pin(self.leases.release(&self.servers));
        let _ = timeout(within, released).await;
    }

    /// Decides the requests that [`decide_locally`](Self::decide_locally) left undecided.
    async fn decide_in_store(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        rest: UndecidedRequests,
        answers: &mut Answers,
    ) -> Result<(), StoreError> {
        let called_us = now_us;
        let now_us = self.options.script_time(now_us);
        let requests = requests.get(rest.first..).unwrap_or_default();
        if requests.iter().all(|request| request.charges.is_empty()) {
            requests.iter().for_each(|_| answers.finish(true));
            return Ok(());
        }
        has_runtime()?;
        let deadline = instant_after(self.options.deadline.saturating_sub(rest.spent));
        let (mut tried, mut slots) = (rest.leases_tried, UnreadSlots::default());
        // Chunks are sent one after the other, so that the requests of a key are decided in order.
        for requests in requests.chunks(BATCH_REQUESTS_MAX) {
            if !self.has_leased_limit(requests) {
                let named = |request| DecideRequest::new(&self.namer, request, called_us);
                let requests = requests.iter().map(named).collect();
                let reply = self.servers.decide(now_us, deadline, requests).await?;
                for (admitted, rows) in reply.rows {
                    push_rows(answers, admitted, &rows);
                }
                slots.append(reply.slots);
                continue;
            }
            // Boxed: the caller allocates and copies this whole future for each request.
            let times = DecisionTimes { now_us, called_us, deadline };
            let mixed = self.decide_mixed(times, requests, &mut tried, answers);
            slots.append(Box::pin(mixed).await?);
        }
        slots.set_read();
        Ok(())
    }

    async fn reset(&self, now_us: u64, limit: u64, key: &[u8]) -> Result<(), StoreError> {
        let now_us = self.options.script_time(now_us);
        let names = self.namer.state_keys(limit, key);
        // All names have the same tag, and so the same slot.
        let slot = names.first().map_or(0, |name| slot_of(name));
        if self.leases.is_enabled() {
            self.with_deadline(self.clear(slot, &names, now_us)).await?;
        } else {
            self.with_deadline(self.servers.reset_states(slot, names, now_us)).await?;
        }
        self.leases.limit_changed(limit, key, true);
        Ok(())
    }

    async fn with_deadline<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        has_runtime()?;
        let result = timeout(self.options.deadline, work).await;
        result.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Timeout, "")))
    }
}

/// Without a runtime, tokio's timer would panic.
fn has_runtime() -> Result<(), StoreError> {
    let unreachable =
        |_| StoreError::new(StoreErrorKind::Unreachable, "call it inside a tokio runtime");
    Handle::try_current().map(drop).map_err(unreachable)
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.leases.stop();
        self.servers.stop();
    }
}

impl Store for RedisStore {
    type Undecided = UndecidedRequests;

    /// Decides from leases only.
    #[inline]
    fn begin(
        &self,
        _: u64,
        call: StoreCall<'_>,
        answers: &mut Answers,
    ) -> Option<UndecidedRequests> {
        answers.clear();
        match call {
            StoreCall::Decide(requests) if self.leases.is_enabled() => {
                self.decide_locally(requests, answers)
            }
            StoreCall::Decide(_) | StoreCall::Adjust(_) | StoreCall::Reset { .. } => {
                Some(UndecidedRequests::default())
            }
        }
    }

    fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        rest: UndecidedRequests,
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a {
        // Without the type, each crate that awaits this would compile the whole store again.
        let finished: BoxedReply<'a, _> = match call {
            StoreCall::Decide(requests) => {
                Box::pin(self.decide_in_store(now_us, requests, rest, answers))
            }
            StoreCall::Adjust(adjustments) => Box::pin(self.adjust(now_us, adjustments, answers)),
            StoreCall::Reset { limit, key } => Box::pin(self.reset(now_us, limit, key)),
        };
        finished
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
        let ending = self.end_and_tell_leases(now_us, id, end, Box::new(plan));
        StoreReply::Later(UndecidedRequests::default(), ending)
    }
}

impl LeaseStore for RedisStore {
    async fn read_state<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LimitState>, StoreError> {
        // Nodes hold a part of a leased limit, so its state in Redis is incomplete. An expiry log
        // may be long, and its row has all that operators need.
        let is_leased = self.leases.leased_limit(charge.params_id).is_some();
        if is_leased || is_expiry_log(charge.params) {
            return Ok(None);
        }
        let name = self.namer.state_key(charge.limit, charge.key, charge.params);
        let mut command = redis::cmd("GET");
        command.arg(&name);
        let value = self.with_deadline(self.servers.command(slot_of(&name), &command)).await?;
        let value = bytes(value).ok_or_else(invalid_reply)?;
        let cell = StoredCell::read(charge.params, value.as_deref()).ok_or_else(invalid_reply)?;
        Ok(Some(cell.state))
    }

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
        // Leases end with windows by the server's clock.
        if self.options.caller_time {
            return None;
        }
        self.leases.register(&self.servers, params, leasing)
    }
}

#[cfg(test)]
mod tests;
