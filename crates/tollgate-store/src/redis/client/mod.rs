//! The servers of a store, whatever their arrangement.

pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod dial;
pub(crate) mod endpoint;
pub(crate) mod failure;
pub(crate) mod health;
pub(crate) mod node;
pub(crate) mod replica;
pub(crate) mod supervise;
pub(crate) mod thread_connections;

use super::batch::connection_task::REDIRECTS_MAX;
use super::batch::queue::{BatchRows, PendingBatch, ReplyReceiver};
use super::batch::{DecideRequest, DecideRequests, ScriptTables};
use super::cluster::{Cluster, NodeCommand, slot_of};
use super::key::KeyNamer;
use super::script::Script;
use super::sentinel::Sentinels;
use super::{RedisOptions, Status};
use crate::{StoreError, StoreErrorKind};
use connection::ScriptCall;
use dial::{Dialer, NodeLocation};
use endpoint::{Endpoint, Topology};
use failure::{Failure, FailureAction};
use node::{Node, NodeContext};
use redis::{Cmd, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use tollgate_core::Intent;

/// How many stores there have been in this process.
static STORES: AtomicU64 = AtomicU64::new(0);

/// One server, or a cluster of them.
#[derive(Debug)]
pub(crate) struct Servers {
    shared: NodeContext,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    One(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    pub(crate) fn start(
        endpoint: &Endpoint,
        options: &Arc<RedisOptions>,
        namer: &Arc<KeyNamer>,
    ) -> Result<Self, StoreError> {
        let dialer = Dialer::new(endpoint, options)?;
        let home = match &endpoint.topology {
            Topology::One(address) => Some(NodeLocation::Fixed(address.clone())),
            Topology::Sentinel { master, nodes } => {
                let dialer = dialer.for_sentinels(endpoint);
                Some(NodeLocation::Sentinels(Sentinels::new(master, nodes, dialer, options)))
            }
            Topology::Cluster(_) => None,
        };
        let shared = NodeContext {
            dialer: Arc::new(dialer),
            options: Arc::clone(options),
            namer: Arc::clone(namer),
            task_restarts: Arc::default(),
            number: STORES.fetch_add(1, Ordering::Relaxed),
            runtime: Handle::current(),
        };
        let kind = match (home, &endpoint.topology) {
            (None, Topology::Cluster(seeds)) => {
                Kind::Cluster(Cluster::start(seeds.clone(), shared.clone()))
            }
            (Some(home), _) => Kind::One(Node::start(home, shared.clone(), Weak::new())),
            (None, _) => return Err(StoreError::new(StoreErrorKind::Rejected, "")),
        };
        Ok(Self { shared, kind })
    }

    /// Gives the calling thread connections of its own.
    pub(crate) fn attach_thread(&self, connections: usize) {
        thread_connections::attach_thread(self.shared.number, connections);
        self.nodes().iter().for_each(|node| drop(thread_connections::thread_queue(node)));
    }

    pub(crate) fn stop(&self) {
        match &self.kind {
            Kind::One(node) => node.stop(),
            Kind::Cluster(cluster) => cluster.stop(),
        }
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        match &self.kind {
            Kind::One(node) => vec![Arc::clone(node)],
            Kind::Cluster(cluster) => cluster.nodes(),
        }
    }

    pub(crate) fn is_breaker_open(&self) -> bool {
        match &self.kind {
            Kind::One(node) => node.breaker.is_open(),
            Kind::Cluster(cluster) => {
                cluster.is_map_unreadable()
                    || self.nodes().iter().any(|node| node.breaker.is_open())
            }
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.kind, Kind::Cluster(_))
    }

    pub(crate) fn status(&self) -> Status {
        let nodes = self.nodes();
        let count = |is: fn(&Arc<Node>) -> bool| nodes.iter().filter(|node| is(node)).count();
        Status {
            servers: nodes.len(),
            open_breakers: count(|node| node.breaker.is_open()),
            disconnected: count(|node| node.is_disconnected()),
            waiting: nodes.iter().map(|node| node.queue_limit.waiting()).sum(),
            task_restarts: self.shared.task_restarts.load(Ordering::Relaxed),
        }
    }

    /// Decides requests, with whatever else waits.
    pub(crate) async fn decide(
        &self,
        now_us: Option<u64>,
        asks: DecideRequests,
    ) -> Result<BatchRows, StoreError> {
        if self.shared.options.replica_reads
            && let Some(answered) = self.peek_at_replicas(now_us, &asks).await
        {
            return Ok(answered);
        }
        match &self.kind {
            Kind::One(node) => wait(node.push(None, now_us, asks)?).await,
            Kind::Cluster(cluster) => cluster.decide(now_us, asks).await,
        }
    }

    /// Has replicas answer, where all of it is peeks; none where one of them cannot.
    async fn peek_at_replicas(
        &self,
        now_us: Option<u64>,
        asks: &DecideRequests,
    ) -> Option<BatchRows> {
        if asks.iter().any(|ask| ask.intent != Intent::Peek) {
            return None;
        }
        let mut answered = BatchRows::new();
        for ask in asks {
            let (mut admitted, mut placed) = (true, Vec::with_capacity(ask.charges.len()));
            // A peek changes nothing, so the limits of several slots may be asked one by one.
            for (slot, places) in
                self.group_by_slot(ask.charges.iter().map(|line| line.name.as_slice()))
            {
                let lines = places.iter().map(|place| ask.charges[*place].clone()).collect();
                let pending = PendingBatch::without_waiters(
                    DecideRequest { intent: ask.intent, charges: lines },
                    now_us,
                );
                let node = self.node_for_slot(slot).await.ok()?;
                let (all_admit, rows) = node.peek_at_replica(&pending).await?;
                admitted &= all_admit;
                placed.extend(places.into_iter().zip(rows));
            }
            placed.sort_by_key(|(place, _)| *place);
            answered.push((admitted, placed.into_iter().map(|(_, row)| row).collect()));
        }
        Some(answered)
    }

    /// The places of names that one call can be for, by slot.
    pub(crate) fn group_by_slot<'a>(
        &self,
        names: impl Iterator<Item = &'a [u8]>,
    ) -> Vec<(u16, Vec<usize>)> {
        let mut parts: Vec<(u16, Vec<usize>)> = Vec::new();
        for (place, name) in names.enumerate() {
            let slot = match &self.kind {
                Kind::One(_) => 0,
                Kind::Cluster(_) => slot_of(name),
            };
            match parts.iter_mut().find(|part| part.0 == slot) {
                Some(part) => part.1.push(place),
                None => parts.push((slot, vec![place])),
            }
        }
        parts
    }

    /// Calls a script that is not a decision, for keys of one slot.
    pub(crate) async fn call(
        &self,
        slot: u16,
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
        now_us: Option<u64>,
    ) -> Result<Value, StoreError> {
        let call = ScriptCall::new(script, tables, program, now_us, self.shared.options.ttl_margin);
        self.run(slot, NodeCommand::Script(call)).await
    }

    /// The same where no request waits for it.
    pub(crate) async fn background_call(
        &self,
        slot: u16,
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
    ) -> Result<Value, StoreError> {
        let call = ScriptCall::new(script, tables, program, None, self.shared.options.ttl_margin);
        self.run(slot, NodeCommand::Background(call)).await
    }

    pub(crate) const fn shared(&self) -> &NodeContext {
        &self.shared
    }

    /// The slot of a name, which is worked out only where it makes a difference.
    pub(crate) fn slot(&self, name: impl FnOnce() -> Vec<u8>) -> u16 {
        match &self.kind {
            Kind::One(_) => 0,
            Kind::Cluster(_) => slot_of(&name()),
        }
    }

    /// Who has a slot.
    pub(crate) async fn node_for_slot(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        match &self.kind {
            Kind::One(node) => Ok(Arc::clone(node)),
            Kind::Cluster(cluster) => cluster.node_for_slot(slot).await,
        }
    }

    /// Whether the node has the slot.
    pub(crate) fn serves_slot(&self, slot: u16, node: &Arc<Node>) -> bool {
        match &self.kind {
            Kind::One(_) => true,
            Kind::Cluster(cluster) => cluster.serves(node, slot),
        }
    }

    /// Those who have slots.
    pub(crate) fn primaries(&self) -> Vec<Arc<Node>> {
        match &self.kind {
            Kind::One(node) => vec![Arc::clone(node)],
            Kind::Cluster(cluster) => cluster.primaries(),
        }
    }

    /// The name of a key by which the node is known again, in one of its own slots.
    pub(crate) fn marker_key(&self, node: &Arc<Node>) -> Option<Vec<u8>> {
        let mut names = self.shared.namer.marker_keys();
        match &self.kind {
            Kind::One(_) => names.next(),
            Kind::Cluster(cluster) => names.find(|name| cluster.is_served_by(name, node)),
        }
    }

    /// Calls a script at one server, wherever its keys may be by now, where no request waits for
    /// it.
    pub(crate) async fn background_call_at(
        &self,
        node: &Arc<Node>,
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
    ) -> Result<Value, StoreError> {
        let call = ScriptCall::new(script, tables, program, None, self.shared.options.ttl_margin);
        node.background_call(&call).await.map_err(|failure| {
            if failure.action == FailureAction::NotPrimary {
                node.record_failure(&failure.error);
            }
            failure.error
        })
    }

    /// Removes keys of one slot.
    pub(crate) async fn unlink(&self, slot: u16, names: Vec<Vec<u8>>) -> Result<(), StoreError> {
        // Of a slot on its way some keys are here and some there, and no command can be for both.
        let each = match &self.kind {
            Kind::One(_) => vec![names],
            Kind::Cluster(_) => names.into_iter().map(|name| vec![name]).collect(),
        };
        let unlink = |names: Vec<Vec<u8>>| async move {
            let mut unlink = redis::cmd("UNLINK");
            unlink.arg(names);
            self.command(slot, &unlink).await
        };
        futures_util::future::try_join_all(each.into_iter().map(unlink)).await.map(drop)
    }

    /// Runs a command that is no script, for keys of one slot.
    pub(crate) async fn command(&self, slot: u16, command: &Cmd) -> Result<Value, StoreError> {
        self.run(slot, NodeCommand::Command(command, false)).await
    }

    async fn run(&self, slot: u16, mut errand: NodeCommand<'_>) -> Result<Value, StoreError> {
        let node = match &self.kind {
            Kind::One(node) => node,
            Kind::Cluster(cluster) => return cluster.run(slot, &mut errand).await,
        };
        for _ in 0..REDIRECTS_MAX {
            match errand.run_on(node).await {
                // The next connection may lead to the server that took over.
                Err(Failure { action: FailureAction::NotPrimary, error }) => {
                    node.record_failure(&error)
                }
                answered => return answered.map_err(|failure| failure.error),
            }
        }
        Err(StoreError::new(StoreErrorKind::Unreachable, "READONLY: it is a replica"))
    }
}

async fn wait(reply: ReplyReceiver) -> Result<BatchRows, StoreError> {
    // Nobody answers when the connection's task was ended.
    reply.await.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Unreachable, "")))
}
