//! Servers and connections: dials, logs in, calls, retries, and opens circuit breakers.

pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod dial;
pub(crate) mod endpoint;
pub(crate) mod failure;
pub(crate) mod health;
pub(crate) mod replica;
pub(crate) mod server;
pub(crate) mod server_clock;
pub(crate) mod supervise;

use super::batch::connection_task::REDIRECTS_MAX;
use super::batch::queue::{BatchRows, BatchScope, PendingBatch, ReplyReceiver};
use super::batch::slot_returns::UnreadReply;
use super::batch::{DecideRequest, DecideRequests, ScriptTables};
use super::cluster::{Cluster, group_by_slot, slot_of};
use super::key::KeyNamer;
use super::script::msgpack::array;
use super::script::{self, Script};
use super::sentinel::Sentinels;
use super::{RedisOptions, Status};
use crate::{BoxedReply, StoreError, StoreErrorKind};
use connection::ScriptCall;
use control::ServerCommand;
use dial::{Dialer, ServerLocation};
use endpoint::{Endpoint, Topology};
use failure::{Failure, FailureAction};
use redis::{Cmd, Value};
use server::{Server, ServerContext};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tollgate_core::Intent;

/// The number of stores that this process has opened.
static STORES: AtomicU64 = AtomicU64::new(0);

/// The servers of a store: one, the primary that sentinels name, or a cluster.
#[derive(Debug)]
pub(crate) struct Servers {
    shared: ServerContext,
    kind: ServerTopology,
}

#[derive(Debug)]
enum ServerTopology {
    One(Arc<Server>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    pub(crate) fn start(
        endpoint: &Endpoint,
        options: &Arc<RedisOptions>,
        namer: &Arc<KeyNamer>,
    ) -> Result<Self, StoreError> {
        let runtime = Handle::try_current().map_err(|_| {
            StoreError::new(StoreErrorKind::Unreachable, "open it inside a tokio runtime")
        })?;
        let shared = ServerContext {
            dialer: Arc::new(Dialer::new(endpoint, options)?),
            options: Arc::clone(options),
            namer: Arc::clone(namer),
            task_restarts: Arc::default(),
            latest_clock: Arc::default(),
            number: STORES.fetch_add(1, Ordering::Relaxed),
            runtime,
        };
        let location = match &endpoint.topology {
            Topology::Cluster(seeds) => {
                let kind = ServerTopology::Cluster(Cluster::start(seeds.clone(), shared.clone()));
                return Ok(Self { shared, kind });
            }
            Topology::One(address) => ServerLocation::Fixed(address.clone()),
            Topology::Sentinel { master, servers } => {
                let dialer = shared.dialer.for_sentinels(endpoint);
                ServerLocation::Sentinels(Sentinels::new(master, servers, dialer, options))
            }
        };
        let kind = ServerTopology::One(Server::start(location, shared.clone(), Weak::new()));
        Ok(Self { shared, kind })
    }

    /// Gives the calling thread connections of its own.
    pub(crate) fn attach_thread(&self, connections: usize) {
        server::attach_thread(self.shared.number, connections);
        self.servers().iter().for_each(|server| drop(server::thread_queue(server)));
    }

    pub(crate) fn stop(&self) {
        match &self.kind {
            ServerTopology::One(server) => server.stop(),
            ServerTopology::Cluster(cluster) => cluster.stop(),
        }
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        match &self.kind {
            ServerTopology::One(server) => vec![Arc::clone(server)],
            ServerTopology::Cluster(cluster) => cluster.servers(),
        }
    }

    pub(crate) fn is_breaker_open(&self) -> bool {
        let no_map =
            matches!(&self.kind, ServerTopology::Cluster(cluster) if cluster.is_map_unreadable());
        no_map || self.servers().iter().any(|server| server.breaker.is_open())
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.kind, ServerTopology::Cluster(_))
    }

    pub(crate) fn status(&self) -> Status {
        let servers = self.servers();
        let count =
            |is: fn(&Arc<Server>) -> bool| servers.iter().filter(|server| is(server)).count();
        Status {
            servers: servers.len(),
            open_breakers: count(|server| server.breaker.is_open()),
            disconnected: count(|server| server.is_disconnected()),
            waiting: servers.iter().map(|server| server.queue_limit.waiting()).sum(),
            task_restarts: self.shared.task_restarts.load(Ordering::Relaxed),
        }
    }

    /// Decides requests, in batches with other requests that wait. Waits for servers until
    /// `deadline`. An error means that no charge was decided.
    pub(crate) async fn decide(
        &self,
        now_us: Option<u64>,
        deadline: Instant,
        requests: DecideRequests,
    ) -> Result<UnreadReply, StoreError> {
        if self.shared.options.replica_reads {
            let peeked = Box::pin(self.peek_at_replicas(now_us, &requests));
            if let Ok(Some(answered)) = timeout_at(deadline, peeked).await {
                return Ok(UnreadReply { rows: answered, ..UnreadReply::default() });
            }
        }
        match &self.kind {
            ServerTopology::One(server) => {
                read_reply(server.push(BatchScope::Server, now_us, requests), deadline).await
            }
            ServerTopology::Cluster(cluster) => cluster.decide(now_us, deadline, requests).await,
        }
    }

    /// Answers from replicas if all requests are peeks; `None` if a replica cannot answer.
    async fn peek_at_replicas(
        &self,
        now_us: Option<u64>,
        requests: &DecideRequests,
    ) -> Option<BatchRows> {
        if requests.iter().any(|request| request.intent != Intent::Peek) {
            return None;
        }
        let mut answered = BatchRows::new();
        for request in requests {
            let (mut admitted, mut rows) = (true, vec![None; request.charges.len()]);
            // A peek changes nothing, so the slots can be asked separately.
            let names = request.charges.iter().map(|charge| charge.name.as_slice());
            for (slot, indexes) in self.group_by_slot(names) {
                let charges = indexes.iter().map(|i| request.charges[*i].clone()).collect();
                let part = DecideRequest { intent: request.intent, charges, fence: None };
                let pending = PendingBatch::without_waiters(part, now_us);
                let server = self.server_for_slot(slot).await.ok()?;
                let (all_admit, part_rows) = server.peek_at_replica(&pending).await?;
                admitted &= all_admit;
                indexes.into_iter().zip(part_rows).for_each(|(i, row)| rows[i] = Some(row));
            }
            answered.push((admitted, rows.into_iter().flatten().collect()));
        }
        Some(answered)
    }

    /// Groups the indexes of names by slot: one script call may use the names of one group.
    pub(crate) fn group_by_slot<'a>(
        &self,
        names: impl Iterator<Item = &'a [u8]>,
    ) -> Vec<(u16, Vec<usize>)> {
        group_by_slot(names.map(|name| if self.is_cluster() { slot_of(name) } else { 0 }))
    }

    /// Builds a call of a script that does not decide requests.
    pub(crate) fn script_call(
        &self,
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
        now_us: Option<u64>,
    ) -> ScriptCall {
        ScriptCall::new(script, tables, program, now_us, self.shared.options.ttl_margin)
    }

    /// Calls a script for keys of one slot, for a waiting request.
    pub(crate) async fn call(
        &self,
        slot: u16,
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
        now_us: Option<u64>,
    ) -> Result<Value, StoreError> {
        let call = self.script_call(script, tables, program, now_us);
        self.run(slot, ServerCommand::Script(call)).await
    }

    /// Calls a script for keys of one slot that no request waits for.
    pub(crate) async fn background_call(
        &self,
        slot: u16,
        call: ScriptCall,
    ) -> Result<Value, StoreError> {
        self.run(slot, ServerCommand::Background(call)).await
    }

    pub(crate) const fn shared(&self) -> &ServerContext {
        &self.shared
    }

    /// The slot of a name. The name is computed only for a cluster.
    pub(crate) fn slot(&self, name: impl FnOnce() -> Vec<u8>) -> u16 {
        if self.is_cluster() { slot_of(&name()) } else { 0 }
    }

    /// The server that has a slot.
    pub(crate) async fn server_for_slot(&self, slot: u16) -> Result<Arc<Server>, StoreError> {
        match &self.kind {
            ServerTopology::One(server) => Ok(Arc::clone(server)),
            ServerTopology::Cluster(cluster) => cluster.server_for_slot(slot).await,
        }
    }

    pub(crate) fn serves_slot(&self, slot: u16, server: &Arc<Server>) -> bool {
        match &self.kind {
            ServerTopology::One(_) => true,
            ServerTopology::Cluster(cluster) => cluster.serves(server, slot),
        }
    }

    /// The servers that have slots.
    pub(crate) fn primaries(&self) -> Vec<Arc<Server>> {
        match &self.kind {
            ServerTopology::One(server) => vec![Arc::clone(server)],
            ServerTopology::Cluster(cluster) => cluster.primaries(),
        }
    }

    /// Resets states of one slot.
    pub(crate) async fn reset_states(
        &self,
        slot: u16,
        names: Vec<Vec<u8>>,
        now_us: Option<u64>,
    ) -> Result<(), StoreError> {
        // While a slot migrates, its keys are on two servers, and no call may use both.
        let calls: Vec<Vec<_>> = match &self.kind {
            ServerTopology::One(_) => vec![names],
            ServerTopology::Cluster(_) => names.into_iter().map(|name| vec![name]).collect(),
        };
        let reset = |names: Vec<Vec<u8>>| async move {
            let mut tables = ScriptTables::default();
            for name in names {
                tables.key_index_of(name);
            }
            self.call(slot, &script::RESET, &tables, array(&[]), now_us).await
        };
        futures_util::future::try_join_all(calls.into_iter().map(reset)).await.map(drop)
    }

    /// Runs a command other than a script, for keys of one slot.
    pub(crate) async fn command(&self, slot: u16, command: &Cmd) -> Result<Value, StoreError> {
        self.run(slot, ServerCommand::Command(command, false)).await
    }

    /// Boxed: otherwise each crate that awaits a call would compile this whole client again.
    fn run<'a>(
        &'a self,
        slot: u16,
        mut command: ServerCommand<'a>,
    ) -> BoxedReply<'a, Result<Value, StoreError>> {
        Box::pin(async move {
            let server = match &self.kind {
                ServerTopology::One(server) => server,
                ServerTopology::Cluster(cluster) => return cluster.run(slot, &mut command).await,
            };
            for _ in 0..REDIRECTS_MAX {
                match command.run_on(server).await {
                    // The next connection may reach the new primary.
                    Err(Failure { action: FailureAction::NotPrimary, error }) => {
                        server.record_failure(&error)
                    }
                    answered => return answered.map_err(|failure| failure.error),
                }
            }
            Err(StoreError::new(StoreErrorKind::Unreachable, "READONLY: it is a replica"))
        })
    }
}

/// Waits until `deadline` for the reply to queued requests.
pub(crate) async fn read_reply(
    queued: Result<ReplyReceiver, StoreError>,
    deadline: Instant,
) -> Result<UnreadReply, StoreError> {
    match timeout_at(deadline, queued?).await {
        Ok(reply) => reply.unwrap_or_else(|_| Err(connection_task_ended())),
        Err(_) => Err(Failure::timeout().error),
    }
}

/// The error if the connection task was stopped before it answered.
pub(crate) fn connection_task_ended() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "")
}
