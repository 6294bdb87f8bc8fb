//! A cluster: requests go to the servers that have their slots, and follow when slots move.

mod map;
mod order;
mod slot;
mod split;
mod watch;

pub(super) use slot::slot_of;

use super::batch::Asks;
use super::endpoint::Address;
use super::failure::{Failure, Then};
use super::home::Home;
use super::jitter::jitter;
use super::lane::HOPS_MOST;
use super::link::Call;
use super::node::{Node, Shared};
use super::queue::{Pending, Reply};
use super::task::Tasks;
use crate::{StoreError, StoreErrorKind};
use map::{Map, resolve};
use redis::{Cmd, Value};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, watch as channel};

/// How long a call waits that met a slot on its way.
const TRY_AGAIN: Duration = Duration::from_millis(4);

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    shared: Shared,
    seeds: Vec<Address>,
    map: RwLock<Arc<Map>>,
    /// How the last attempt to read the map ended; once it was read, it is known.
    known: channel::Sender<Option<Result<(), StoreError>>>,
    stale: Notify,
    tasks: Tasks,
}

/// What is sent to the server of a slot besides decisions.
#[derive(Debug)]
pub(super) enum Errand<'a> {
    Script(Call),
    /// One for which no request waits.
    Patient(Call),
    /// The command, and whether it is for a slot that is not the server's own yet.
    Command(&'a Cmd, bool),
}

impl Cluster {
    pub(super) fn start(seeds: Vec<Address>, shared: Shared) -> Arc<Self> {
        let cluster = Arc::new(Self {
            seeds,
            map: RwLock::default(),
            known: channel::Sender::new(None),
            stale: Notify::new(),
            tasks: Tasks::default(),
            shared: shared.clone(),
        });
        let watched = Arc::clone(&cluster);
        let runtime = &shared.runtime;
        cluster
            .tasks
            .supervise("cluster", &shared, runtime, move || watch::run(Arc::clone(&watched)));
        cluster
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
        self.map().nodes.iter().for_each(|node| node.stop());
    }

    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.map().nodes.clone()
    }

    /// Waits until the slots are known, as they are soon after the start. Where nobody could say which they are, there is nothing to wait for.
    pub(super) async fn until_known(&self) -> Result<(), StoreError> {
        if let Some(known) = &*self.known.borrow() {
            return known.clone();
        }
        let mut known = self.known.subscribe();
        let known = known.wait_for(Option::is_some).await;
        // The sender lives as long as this.
        known.ok().and_then(|known| known.clone()).unwrap_or(Ok(()))
    }

    /// Whether its servers could not be found, so that nobody is asked.
    pub(super) fn is_lost(&self) -> bool {
        matches!(&*self.known.borrow(), Some(Err(_)))
    }

    /// Has the slots read again.
    pub(super) fn look_again(&self) {
        self.stale.notify_one();
    }

    pub(super) fn is_served_by(&self, key: &[u8], node: &Node) -> bool {
        self.map().node(slot_of(key)).is_some_and(|own| std::ptr::eq(&**own, node))
    }

    /// Whether the node has the slot.
    pub(super) fn serves(&self, node: &Arc<Node>, slot: u16) -> bool {
        self.map().node(slot).is_some_and(|own| Arc::ptr_eq(own, node))
    }

    /// Who has a slot.
    pub(super) async fn home(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        self.until_known().await?;
        self.node(slot)
    }

    /// Those who have slots.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        self.map().primaries()
    }

    /// Has requests decided by the server of `slot`, in their order.
    fn push(&self, slot: u16, now_us: Option<u64>, asks: Asks) -> Result<Reply, StoreError> {
        self.node(slot)?.push(Some(slot), now_us, asks)
    }

    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn node(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        self.map().node(slot).cloned().ok_or_else(|| {
            self.look_again();
            StoreError::new(StoreErrorKind::Unreachable, "no server has the slot")
        })
    }

    /// The node at an address, new if nobody knew it.
    fn at(self: &Arc<Self>, address: &Address) -> Arc<Node> {
        if let Some(node) = self.map().at(address) {
            return Arc::clone(node);
        }
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = map.at(address) {
            return Arc::clone(node);
        }
        let node = self.start_node(address);
        let mut new = Map::clone(&map);
        new.nodes.push(Arc::clone(&node));
        *map = Arc::new(new);
        node
    }

    fn start_node(self: &Arc<Self>, address: &Address) -> Arc<Node> {
        let home = Home::Fixed(address.clone());
        Node::start(home, self.shared.clone(), Arc::downgrade(self))
    }

    /// Remembers who serves a slot now, and has the others read again, since slots rarely move alone.
    fn moved(self: &Arc<Self>, slot: u16, address: &Address) -> Arc<Node> {
        let node = self.at(address);
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = Map::clone(&map);
        new.assign(slot..=slot, &node);
        *map = Arc::new(new);
        drop(map);
        self.look_again();
        node
    }

    /// Sends a batch on, from a server that did nothing for it.
    pub(super) fn redirect(self: &Arc<Self>, from: &Node, mut pending: Pending, then: Then) {
        let Some(slot) = pending.slot else { return };
        pending.asking = false;
        let own = |host: &str, port| from.address().map(|asked| resolve(host, port, asked));
        match then {
            Then::Moved(host, port) => {
                if let Some(address) = own(&host, port) {
                    self.moved(slot, &address).queue.put_back(pending);
                }
            }
            Then::Ask(host, port) => {
                if let Some(address) = own(&host, port) {
                    pending.asking = true;
                    self.at(&address).queue.put_back(pending);
                }
            }
            // Some keys are here and some there: alone, most requests are wholly here or there.
            Then::TryAgain if pending.waiters() > 1 => {
                pending.split().into_iter().for_each(|pending| self.again(slot, pending));
            }
            _ => {
                self.look_again();
                let cluster = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(jitter(TRY_AGAIN)).await;
                    cluster.again(slot, pending);
                });
            }
        }
    }

    fn again(&self, slot: u16, pending: Pending) {
        match self.node(slot) {
            Ok(node) => node.queue.put_back(pending),
            Err(error) => pending.fail(&error),
        }
    }

    /// Runs an errand at the server of `slot`, following it if it moves.
    pub(super) async fn run(
        self: &Arc<Self>,
        slot: u16,
        errand: &mut Errand<'_>,
    ) -> Result<Value, StoreError> {
        self.until_known().await?;
        let mut node = self.node(slot)?;
        let mut hops = 0;
        loop {
            let failure = match errand.at(&node).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            // A slot on its way arrives; whoever asked has a deadline.
            hops += u8::from(failure.then != Then::TryAgain);
            node = self.follow(slot, errand, &node, failure, hops).await?;
        }
    }

    async fn follow(
        self: &Arc<Self>,
        slot: u16,
        errand: &mut Errand<'_>,
        node: &Node,
        failure: Failure,
        hops: u8,
    ) -> Result<Arc<Node>, StoreError> {
        let Failure { error, then } = failure;
        let address = |host: &str, port| node.address().map(|asked| resolve(host, port, asked));
        errand.ask(false);
        match then {
            _ if hops > HOPS_MOST => Err(error),
            Then::Moved(host, port) => match address(&host, port) {
                Some(address) => Ok(self.moved(slot, &address)),
                None => Err(error),
            },
            Then::Ask(host, port) => match address(&host, port) {
                Some(address) => {
                    errand.ask(true);
                    Ok(self.at(&address))
                }
                None => Err(error),
            },
            Then::TryAgain | Then::Elsewhere => {
                self.look_again();
                tokio::time::sleep(jitter(TRY_AGAIN)).await;
                self.node(slot)
            }
            Then::Keep | Then::Refused | Then::Reconnect | Then::Reload => Err(error),
        }
    }
}

impl Errand<'_> {
    pub(super) async fn at(&self, node: &Arc<Node>) -> Result<Value, Failure> {
        match self {
            Self::Script(call) => node.control(call).await,
            Self::Patient(call) => node.patiently(call).await,
            Self::Command(command, asking) => node.command(command, *asking).await,
        }
    }

    /// Sets whether it is for a slot on its way.
    const fn ask(&mut self, now: bool) {
        match self {
            Self::Script(call) | Self::Patient(call) => call.asking = now,
            Self::Command(_, asking) => *asking = now,
        }
    }
}
