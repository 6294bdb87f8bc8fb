//! State in Redis or Valkey, shared by many processes.
//!
//! A request is decided inside Redis by one script, all-or-nothing, at the server's own time. Requests that wait at the same moment
//! share a call. The script decides with Lua mirrors of the algorithms, and the rows are worked out on this side from what it read.
//!
//! A call that fails is answered with an error, within its deadline, and never made again, because a server that did not answer may have
//! decided all the same. The exceptions are what a server says when it did nothing: that it lacks the script, became a replica, or that a
//! slot is elsewhere.

mod adjust;
mod batch;
mod breaker;
mod cluster;
mod decide;
mod desk;
mod dial;
mod endpoint;
mod failure;
mod home;
mod jitter;
mod key;
mod lane;
mod lease;
mod link;
mod login;
mod node;
mod observer;
mod options;
mod pack;
mod patient;
mod probe;
mod queue;
mod refusals;
mod replay;
mod replica;
mod reply;
mod reservation;
mod script;
mod sentinel;
mod servers;
mod single;
mod status;
mod task;

pub use decide::Rest;
pub use endpoint::{Endpoint, Tls};
pub use lease::{Stats as LeaseStats, lease_reply, lease_script};
pub use observer::Observer;
pub use options::{BootClock, Options};
pub use probe::Report;
pub use status::Status;

use crate::{
    Adjustment, Answer, Answers, Call, Change, Charge, Ended, LeaseStore, Leasing, LedgerReport,
    Opened, Opening, Place, Reply, ReservationStore, Settlement, Store, StoreError, StoreErrorKind,
    Ticket,
};
use adjust::Changes;
use batch::Named;
use cluster::slot_of;
use key::Namer;
use lease::Leases;
use reply::Adjusted;
use servers::Servers;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tollgate_core::Numbers;

/// Redis or Valkey as a store: one server, the one that sentinels name, or a cluster.
#[derive(Debug)]
pub struct RedisStore {
    namer: Arc<Namer>,
    servers: Arc<Servers>,
    leases: Arc<Leases>,
    options: Arc<Options>,
}

impl RedisStore {
    /// A store on the servers of `endpoint`. It connects in the background, on the runtime that this is called in, and again whenever a
    /// connection is lost; until then every call fails, at its deadline at the latest. An error means that certificates cannot be read.
    pub fn open(endpoint: &Endpoint, options: Options) -> Result<Self, StoreError> {
        let password = endpoint.password.as_deref().unwrap_or_default();
        let secret = match options.secret.as_slice() {
            [] => key::secret(password, &options.prefix),
            given => given.to_vec(),
        };
        let namer = Arc::new(Namer::new(&options.prefix, &secret));
        let options = Arc::new(options);
        let servers = Arc::new(Servers::start(endpoint, &options, &namer)?);
        let leases = Arc::new(Leases::new(&namer, options.boot_clock.clone()));
        Ok(Self { namer, servers, leases, options })
    }

    /// Gives the calling thread connections of its own to every server, so that what is asked on it need not wake another thread. They live on
    /// the runtime that this is called in, which is to be of this thread alone; until they are up, and after it has ended, the store decides
    /// over those that all threads share.
    pub fn settle_here(&self, connections: usize) {
        self.servers.settle_here(connections);
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
    pub fn is_open(&self) -> bool {
        self.servers.is_open()
    }

    /// What leases came to.
    pub fn lease_stats(&self) -> LeaseStats {
        self.leases.stats()
    }

    /// Returns what leases hold, as far as the store can be told within the time, and takes no more: for a process that is about to end. Whatever
    /// is not returned is lost until its window ends, or until time has returned it.
    pub async fn release_leases(&self, within: Duration) {
        let _ = timeout(within, self.leases.release(&self.servers)).await;
    }

    /// Applies changes, those of one slot together, and answers with the rows in their order.
    async fn apply(
        &self,
        now_us: Option<u64>,
        lines: &[(Named, Change)],
    ) -> Result<Vec<Answer>, StoreError> {
        let slots = self.servers.parts(lines.iter().map(|(line, _)| line.name.as_slice()));
        let one = |(slot, places): &(u16, Vec<usize>)| {
            let slot = *slot;
            let picked: Vec<_> =
                places.iter().map(|place| (&lines[*place].0, &lines[*place].1)).collect();
            let changes = Changes::new(picked.iter().copied());
            async move {
                let program = changes.program();
                let value =
                    self.servers.call(slot, &script::ADJUST, &changes.tables, program, now_us);
                adjust::rows(picked, &Adjusted::read(value.await?)?)
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
        let now_us = self.options.at(now_us);
        let change = |change| adjust::by_the_servers_clock(change, called_us);
        let name = |one: &Adjustment<'_>| (self.named(&one.charge, called_us), change(one.change));
        let lines: Vec<_> = adjustments.iter().map(name).collect();
        let rows = self.in_time(self.apply(now_us, &lines)).await?;
        for one in adjustments {
            let surrender = matches!(one.change, Change::Block { .. });
            self.leases.changed(one.charge.limit, one.charge.key, surrender);
        }
        rows.into_iter().for_each(|row| answers.push(row));
        answers.finish(true);
        Ok(())
    }

    async fn reset(&self, limit: u64, key: &[u8]) -> Result<(), StoreError> {
        let names = self.namer.names(limit, key);
        // Their tag is the same, and so their slot.
        let slot = names.first().map_or(0, |name| slot_of(name));
        match self.leases.are_used() {
            true => self.in_time(self.clear(slot, &names)).await?,
            false => self.in_time(self.servers.unlink(slot, names)).await?,
        }
        self.leases.changed(limit, key, true);
        Ok(())
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.in_time_after(Duration::ZERO, work).await
    }

    /// The same where a part of the deadline is gone.
    async fn in_time_after<T>(
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
    type Rest = Rest;

    /// Leases decide here; all else is left.
    #[inline]
    fn begin(&self, _: u64, call: Call<'_>, answers: &mut Answers) -> Option<Rest> {
        answers.clear();
        match call {
            Call::Decide(requests) => self.decide_locally(requests, answers),
            Call::Adjust(_) | Call::Reset { .. } => Some(Rest::default()),
        }
    }

    async fn finish<'a>(
        &'a self,
        now_us: u64,
        call: Call<'a>,
        rest: Rest,
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        match call {
            Call::Decide(requests) => self.decide_rest(now_us, requests, rest, answers).await,
            Call::Adjust(adjustments) => self.adjust(now_us, adjustments, answers).await,
            Call::Reset { limit, key } => self.reset(limit, key).await,
        }
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        Place::new(self.namer.name(charge.limit, charge.key, charge.numbers))
    }

    fn enroll(&self, _: &Numbers) -> Ticket {
        Ticket::default()
    }
}

impl ReservationStore for RedisStore {
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: Opening<'a>,
    ) -> Reply<'a, Result<Opened, StoreError>, Rest> {
        let opening = async move { self.open_record(now_us, &opening).await };
        Reply::later(Rest::default(), self.in_time(opening))
    }

    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> Reply<'a, Result<Option<Ended>, StoreError>, Rest> {
        let ending = async move {
            let ended = self.in_time(self.end_record(now_us, id, end, &plan)).await?;
            let places = ended.iter().flat_map(|ended| &ended.places);
            places.for_each(|place| self.leases.changed_at(place.as_bytes()));
            Ok(ended)
        };
        Reply::later(Rest::default(), ending)
    }
}

impl LeaseStore for RedisStore {
    async fn ledger<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        match self.leases.of(charge.ticket) {
            Some(_) => self.read_ledger(charge).await,
            None => Ok(None),
        }
    }

    fn enroll_leased(&self, numbers: &Numbers, leasing: &Leasing) -> Option<Ticket> {
        // A window that the caller's clock names is not one that a lease can end with.
        let leasable = !self.options.caller_time;
        leasable.then(|| self.leases.enroll(&self.servers, numbers, leasing)).flatten()
    }
}
