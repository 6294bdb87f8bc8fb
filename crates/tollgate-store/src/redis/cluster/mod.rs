//! Redis Cluster: the slot map, redirects, and requests over several slots.

mod multi_slot;
mod pipeline;
mod refresh;
mod route;
mod slot_map;

pub(super) use slot_map::{group_by_slot, slot_of};

use super::batch::connection_task::REDIRECTS_MAX;
use super::batch::queue::{BatchScope, PendingBatch};
use super::client::connection::ScriptCall;
use super::client::dial::NodeLocation;
use super::client::endpoint::ServerAddress;
use super::client::failure::{Failure, FailureAction};
use super::client::node::{Node, NodeContext};
use super::client::supervise::{TaskSupervisor, jitter};
use crate::{StoreError, StoreErrorKind};
use redis::{Cmd, Value};
use slot_map::{SlotMap, resolve};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, watch as channel};

/// How long a call waits while a slot migrates.
const TRY_AGAIN: Duration = Duration::from_millis(4);

/// A cluster: its slot map and its nodes.
#[derive(Debug)]
pub(super) struct Cluster {
    shared: NodeContext,
    seeds: Vec<ServerAddress>,
    map: RwLock<Arc<SlotMap>>,
    /// How the last attempt to read the map ended. Stays `Ok` once the map has been read.
    map_read: channel::Sender<Option<Result<(), StoreError>>>,
    refresh: Notify,
    tasks: TaskSupervisor,
}

/// A call to the server of a slot that decides nothing.
#[derive(Debug)]
pub(super) enum NodeCommand<'a> {
    Script(ScriptCall),
    /// A call that no request waits for.
    Background(ScriptCall),
    /// A command other than a script, and whether to send `ASKING` first.
    Command(&'a Cmd, bool),
}

impl Cluster {
    pub(super) fn start(seeds: Vec<ServerAddress>, shared: NodeContext) -> Arc<Self> {
        let cluster = Arc::new(Self {
            seeds,
            map: RwLock::default(),
            map_read: channel::Sender::new(None),
            refresh: Notify::new(),
            tasks: TaskSupervisor::default(),
            shared: shared.clone(),
        });
        let watched = Arc::clone(&cluster);
        let runtime = &shared.runtime;
        cluster
            .tasks
            .supervise("cluster", &shared, runtime, move || refresh::run(Arc::clone(&watched)));
        cluster
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
        self.map().nodes.iter().for_each(|node| node.stop());
    }

    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.map().nodes.clone()
    }

    /// Waits for the first attempt to read the map.
    pub(super) async fn until_map_read(&self) -> Result<(), StoreError> {
        if let Some(read) = &*self.map_read.borrow() {
            return read.clone();
        }
        let mut read = self.map_read.subscribe();
        // The sender lives as long as `self`.
        let read = read.wait_for(Option::is_some).await;
        read.ok().and_then(|read| read.clone()).unwrap_or(Ok(()))
    }

    /// Whether the map could not be read, so that no server is called.
    pub(super) fn is_map_unreadable(&self) -> bool {
        matches!(&*self.map_read.borrow(), Some(Err(_)))
    }

    /// Makes the refresh task read the map again.
    pub(super) fn request_refresh(&self) {
        self.refresh.notify_one();
    }

    /// Whether the node has the slot.
    pub(super) fn serves(&self, node: &Node, slot: u16) -> bool {
        self.map().node(slot).is_some_and(|own| std::ptr::eq(&**own, node))
    }

    /// Whether slots moved since the map was read.
    pub(super) fn is_map_partial(&self) -> bool {
        self.map().is_partial
    }

    /// The node that has a slot.
    pub(super) async fn node_for_slot(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        self.until_map_read().await?;
        self.node(slot)
    }

    /// The nodes that have slots.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        self.map().primaries()
    }

    fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn node(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        self.map().node(slot).cloned().ok_or_else(|| {
            self.request_refresh();
            StoreError::new(StoreErrorKind::Unreachable, "no server has the slot")
        })
    }

    /// The node at an address, started if it is new.
    fn node_at(self: &Arc<Self>, address: &ServerAddress) -> Arc<Node> {
        if let Some(node) = self.map().node_at(address) {
            return Arc::clone(node);
        }
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = map.node_at(address) {
            return Arc::clone(node);
        }
        let node = self.start_node(address);
        let mut new = SlotMap::clone(&map);
        new.nodes.push(Arc::clone(&node));
        *map = Arc::new(new);
        node
    }

    fn start_node(self: &Arc<Self>, address: &ServerAddress) -> Arc<Node> {
        Node::start(NodeLocation::Fixed(address.clone()), self.shared.clone(), Arc::downgrade(self))
    }

    /// Records that a slot moved, and reads the whole map again: slots rarely move alone.
    fn record_move(self: &Arc<Self>, slot: u16, address: &ServerAddress) -> Arc<Node> {
        let node = self.node_at(address);
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = SlotMap::clone(&map);
        new.assign(slot..=slot, &node);
        new.is_partial = true;
        *map = Arc::new(new);
        drop(map);
        self.request_refresh();
        node
    }

    /// Records that a slot migrates: until the map is read again, calls use no other slot with it.
    fn record_migration(&self, slot: u16) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if !map.is_migrating(slot) {
            Arc::make_mut(&mut map).set_migrating(slot);
        }
    }

    /// The node that a redirect names, and whether it needs `ASKING` first.
    fn redirected(
        self: &Arc<Self>,
        slot: u16,
        from: &Node,
        action: &FailureAction,
    ) -> Option<(Arc<Node>, bool)> {
        let (host, port, asking) = match action {
            FailureAction::Moved(host, port) => (host, *port, false),
            FailureAction::Ask(host, port) => (host, *port, true),
            _ => return None,
        };
        let address = resolve(host, port, from.address()?);
        if !asking {
            return Some((self.record_move(slot, &address), false));
        }
        self.record_migration(slot);
        Some((self.node_at(&address), true))
    }

    /// Requeues a batch after a failure at a server that did nothing for it.
    pub(super) fn redirect(
        self: &Arc<Self>,
        from: &Node,
        mut pending: PendingBatch,
        action: FailureAction,
    ) {
        let BatchScope::Slot(slot) = pending.scope else {
            return self.ask_by_slot(pending, &action);
        };
        pending.asking = false;
        match action {
            FailureAction::Moved(..) | FailureAction::Ask(..) => {
                if let Some((node, asking)) = self.redirected(slot, from, &action) {
                    pending.asking = asking;
                    node.queue.put_back(pending);
                }
            }
            // The keys are on two servers. Alone, most requests need only one of them.
            FailureAction::TryAgain if pending.waiters() > 1 => {
                pending.split().into_iter().for_each(|pending| self.requeue(slot, pending));
            }
            _ => {
                self.request_refresh();
                let cluster = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(jitter(TRY_AGAIN)).await;
                    cluster.requeue(slot, pending);
                });
            }
        }
    }

    /// Queues a batch for one slot at the server that has the slot.
    fn requeue(&self, slot: u16, pending: PendingBatch) {
        match self.node(slot) {
            Ok(node) => node.queue.put_back(pending),
            Err(error) => pending.fail(&error),
        }
    }

    /// Runs a command at the server of `slot`, and follows redirects.
    pub(super) async fn run(
        self: &Arc<Self>,
        slot: u16,
        command: &mut NodeCommand<'_>,
    ) -> Result<Value, StoreError> {
        self.until_map_read().await?;
        let (mut node, mut redirects) = (self.node(slot)?, 0);
        loop {
            let Failure { error, action } = match command.run_on(&node).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            // A migration ends, and callers have deadlines: TryAgain does not count.
            redirects += u8::from(action != FailureAction::TryAgain);
            command.set_asking(false);
            node = match action {
                _ if redirects > REDIRECTS_MAX => return Err(error),
                FailureAction::TryAgain | FailureAction::NotPrimary => {
                    self.request_refresh();
                    tokio::time::sleep(jitter(TRY_AGAIN)).await;
                    self.node(slot)?
                }
                action => {
                    let (node, asking) = self.redirected(slot, &node, &action).ok_or(error)?;
                    command.set_asking(asking);
                    node
                }
            };
        }
    }
}

impl NodeCommand<'_> {
    pub(super) async fn run_on(&self, node: &Arc<Node>) -> Result<Value, Failure> {
        match self {
            Self::Script(call) => node.control(call).await,
            Self::Background(call) => node.background_call(call).await,
            Self::Command(command, asking) => node.command(command, *asking).await,
        }
    }

    const fn set_asking(&mut self, value: bool) {
        match self {
            Self::Script(call) | Self::Background(call) => call.asking = value,
            Self::Command(_, asking) => *asking = value,
        }
    }
}
