//! A cluster: requests go to the servers that have their slots, and follow when slots move.

mod multi_slot;
mod pipeline;
mod refresh;
mod slot_map;

pub(super) use slot_map::slot_of;

use super::batch::DecideRequests;
use super::batch::connection_task::REDIRECTS_MAX;
use super::batch::queue::{PendingBatch, ReplyReceiver};
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

/// How long a call waits that met a slot on its way.
const TRY_AGAIN: Duration = Duration::from_millis(4);

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    shared: NodeContext,
    seeds: Vec<ServerAddress>,
    map: RwLock<Arc<SlotMap>>,
    /// How the last attempt to read the map ended; once it was read, it is known.
    map_read: channel::Sender<Option<Result<(), StoreError>>>,
    refresh: Notify,
    tasks: TaskSupervisor,
}

/// What is sent to the server of a slot besides decisions.
#[derive(Debug)]
pub(super) enum NodeCommand<'a> {
    Script(ScriptCall),
    /// One for which no request waits.
    Background(ScriptCall),
    /// The command, and whether it is for a slot that is not the server's own yet.
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

    /// Waits until the slots are known, as they are soon after the start. Where nobody could say
    /// which they are, there is nothing to wait for.
    pub(super) async fn until_map_read(&self) -> Result<(), StoreError> {
        if let Some(known) = &*self.map_read.borrow() {
            return known.clone();
        }
        let mut known = self.map_read.subscribe();
        let known = known.wait_for(Option::is_some).await;
        // The sender lives as long as this.
        known.ok().and_then(|known| known.clone()).unwrap_or(Ok(()))
    }

    /// Whether its servers could not be found, so that nobody is asked.
    pub(super) fn is_map_unreadable(&self) -> bool {
        matches!(&*self.map_read.borrow(), Some(Err(_)))
    }

    /// Has the slots read again.
    pub(super) fn request_refresh(&self) {
        self.refresh.notify_one();
    }

    pub(super) fn is_served_by(&self, key: &[u8], node: &Node) -> bool {
        self.map().node(slot_of(key)).is_some_and(|own| std::ptr::eq(&**own, node))
    }

    /// Whether the node has the slot.
    pub(super) fn serves(&self, node: &Arc<Node>, slot: u16) -> bool {
        self.map().node(slot).is_some_and(|own| Arc::ptr_eq(own, node))
    }

    /// Who has a slot.
    pub(super) async fn node_for_slot(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        self.until_map_read().await?;
        self.node(slot)
    }

    /// Those who have slots.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        self.map().primaries()
    }

    /// Has requests decided by the server of `slot`, in their order.
    fn push(
        &self,
        slot: u16,
        now_us: Option<u64>,
        asks: DecideRequests,
    ) -> Result<ReplyReceiver, StoreError> {
        self.node(slot)?.push(Some(slot), now_us, asks)
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

    /// The node at an address, new if nobody knew it.
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
        let home = NodeLocation::Fixed(address.clone());
        Node::start(home, self.shared.clone(), Arc::downgrade(self))
    }

    /// Remembers who serves a slot now, and has the others read again, since slots rarely move
    /// alone.
    fn record_move(self: &Arc<Self>, slot: u16, address: &ServerAddress) -> Arc<Node> {
        let node = self.node_at(address);
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = SlotMap::clone(&map);
        new.assign(slot..=slot, &node);
        *map = Arc::new(new);
        drop(map);
        self.request_refresh();
        node
    }

    /// Sends a batch on, from a server that did nothing for it.
    pub(super) fn redirect(
        self: &Arc<Self>,
        from: &Node,
        mut pending: PendingBatch,
        then: FailureAction,
    ) {
        let Some(slot) = pending.slot else { return };
        pending.asking = false;
        let own = |host: &str, port| from.address().map(|asked| resolve(host, port, asked));
        match then {
            FailureAction::Moved(host, port) => {
                if let Some(address) = own(&host, port) {
                    self.record_move(slot, &address).queue.put_back(pending);
                }
            }
            FailureAction::Ask(host, port) => {
                if let Some(address) = own(&host, port) {
                    pending.asking = true;
                    self.node_at(&address).queue.put_back(pending);
                }
            }
            // Some keys are here and some there: alone, most requests are wholly here or there.
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

    fn requeue(&self, slot: u16, pending: PendingBatch) {
        match self.node(slot) {
            Ok(node) => node.queue.put_back(pending),
            Err(error) => pending.fail(&error),
        }
    }

    /// Runs an errand at the server of `slot`, following it if it moves.
    pub(super) async fn run(
        self: &Arc<Self>,
        slot: u16,
        errand: &mut NodeCommand<'_>,
    ) -> Result<Value, StoreError> {
        self.until_map_read().await?;
        let mut node = self.node(slot)?;
        let mut hops = 0;
        loop {
            let failure = match errand.run_on(&node).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            // A slot on its way arrives; whoever asked has a deadline.
            hops += u8::from(failure.action != FailureAction::TryAgain);
            node = self.next_node(slot, errand, &node, failure, hops).await?;
        }
    }

    async fn next_node(
        self: &Arc<Self>,
        slot: u16,
        errand: &mut NodeCommand<'_>,
        node: &Node,
        failure: Failure,
        hops: u8,
    ) -> Result<Arc<Node>, StoreError> {
        let Failure { error, action: then } = failure;
        let address = |host: &str, port| node.address().map(|asked| resolve(host, port, asked));
        errand.set_asking(false);
        match then {
            _ if hops > REDIRECTS_MAX => Err(error),
            FailureAction::Moved(host, port) => match address(&host, port) {
                Some(address) => Ok(self.record_move(slot, &address)),
                None => Err(error),
            },
            FailureAction::Ask(host, port) => match address(&host, port) {
                Some(address) => {
                    errand.set_asking(true);
                    Ok(self.node_at(&address))
                }
                None => Err(error),
            },
            FailureAction::TryAgain | FailureAction::NotPrimary => {
                self.request_refresh();
                tokio::time::sleep(jitter(TRY_AGAIN)).await;
                self.node(slot)
            }
            FailureAction::KeepConnection
            | FailureAction::CallRefused
            | FailureAction::Reconnect
            | FailureAction::SendScript => Err(error),
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

    /// Sets whether it is for a slot on its way.
    const fn set_asking(&mut self, now: bool) {
        match self {
            Self::Script(call) | Self::Background(call) => call.asking = now,
            Self::Command(_, asking) => *asking = now,
        }
    }
}
