//! Redis Cluster: the slot map, redirects, and requests over several slots.

mod multi_slot;
mod pipeline;
mod refresh;
mod route;
mod slot_map;

pub(super) use slot_map::{group_by_slot, slot_of};

use super::batch::connection_task::REDIRECTS_MAX;
use super::batch::queue::{BatchScope, PendingBatch};
use super::client::control::ServerCommand;
use super::client::dial::ServerLocation;
use super::client::endpoint::ServerAddress;
use super::client::failure::{Failure, FailureAction};
use super::client::server::{Server, ServerContext};
use super::client::supervise::{TaskSupervisor, jitter};
use crate::{StoreError, StoreErrorKind};
use redis::Value;
use slot_map::{SlotMap, resolve};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, watch as channel};

/// The pause of a call while its slot migrates.
const TRY_AGAIN: Duration = Duration::from_millis(4);

/// A cluster: its slot map and its servers.
#[derive(Debug)]
pub(super) struct Cluster {
    shared: ServerContext,
    seeds: Vec<ServerAddress>,
    map: RwLock<Arc<SlotMap>>,
    /// The result of the last attempt to read the map. Stays `Ok` once the map was read.
    map_read: channel::Sender<Option<Result<(), StoreError>>>,
    refresh: Notify,
    tasks: TaskSupervisor,
}

impl Cluster {
    pub(super) fn start(seeds: Vec<ServerAddress>, shared: ServerContext) -> Arc<Self> {
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
        self.map().servers.iter().for_each(|server| server.stop());
    }

    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        self.map().servers.clone()
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

    /// Whether the server has the slot.
    pub(super) fn serves(&self, server: &Server, slot: u16) -> bool {
        self.map().server(slot).is_some_and(|own| std::ptr::eq(&**own, server))
    }

    /// The name at `index` among those whose slot the server has, and does not pass on at the
    /// moment. `None` if slots moved since the map was read.
    pub(super) fn marker_key(
        &self,
        server: &Server,
        index: usize,
        names: impl Iterator<Item = Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let map = self.map();
        let has = |slot| map.server(slot).is_some_and(|own| std::ptr::eq(&**own, server));
        let stays = |slot| has(slot) && !map.is_migrating(slot);
        if map.is_partial {
            return None;
        }
        names.filter(|name| stays(slot_of(name))).nth(index)
    }

    /// The server that has a slot.
    pub(super) async fn server_for_slot(&self, slot: u16) -> Result<Arc<Server>, StoreError> {
        self.until_map_read().await?;
        self.server(slot)
    }

    /// The servers that have slots.
    pub(super) fn primaries(&self) -> Vec<Arc<Server>> {
        self.map().primaries()
    }

    fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn server(&self, slot: u16) -> Result<Arc<Server>, StoreError> {
        self.map().server(slot).cloned().ok_or_else(|| {
            self.request_refresh();
            StoreError::new(StoreErrorKind::Unreachable, "no server has the slot")
        })
    }

    /// The server at an address, started if it is new.
    fn server_at(self: &Arc<Self>, address: &ServerAddress) -> Arc<Server> {
        if let Some(server) = self.map().server_at(address) {
            return Arc::clone(server);
        }
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = map.server_at(address) {
            return Arc::clone(server);
        }
        let server = self.start_server(address);
        let mut new = SlotMap::clone(&map);
        new.servers.push(Arc::clone(&server));
        *map = Arc::new(new);
        server
    }

    fn start_server(self: &Arc<Self>, address: &ServerAddress) -> Arc<Server> {
        Server::start(
            ServerLocation::Fixed(address.clone()),
            self.shared.clone(),
            Arc::downgrade(self),
        )
    }

    /// Records that a slot moved, and requests a refresh of the map: slots rarely move alone.
    fn record_move(self: &Arc<Self>, slot: u16, address: &ServerAddress) -> Arc<Server> {
        let server = self.server_at(address);
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = SlotMap::clone(&map);
        new.assign(slot..=slot, &server);
        new.is_partial = true;
        *map = Arc::new(new);
        drop(map);
        self.request_refresh();
        server
    }

    /// Records that a slot migrates. Until the map is read again, calls combine no other slot with
    /// it.
    fn record_migration(&self, slot: u16) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if !map.is_migrating(slot) {
            Arc::make_mut(&mut map).set_migrating(slot);
        }
    }

    /// The server named by a redirect, and whether it needs `ASKING` first.
    pub(super) fn redirected(
        self: &Arc<Self>,
        slot: u16,
        from: &Server,
        action: &FailureAction,
    ) -> Option<(Arc<Server>, bool)> {
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
        Some((self.server_at(&address), true))
    }

    /// Requeues a batch after a failure at a server that did nothing for it.
    pub(super) fn redirect(
        self: &Arc<Self>,
        from: &Server,
        mut pending: PendingBatch,
        action: FailureAction,
    ) {
        let BatchScope::Slot(slot) = pending.scope else {
            return self.ask_by_slot(pending, &action);
        };
        pending.asking = false;
        match action {
            FailureAction::Moved(..) | FailureAction::Ask(..) => {
                if let Some((server, asking)) = self.redirected(slot, from, &action) {
                    pending.asking = asking;
                    server.queue.put_back(pending);
                }
            }
            // The keys are on two servers. Split up, most requests need only one of them.
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
        match self.server(slot) {
            Ok(server) => server.queue.put_back(pending),
            Err(error) => pending.fail(&error),
        }
    }

    /// Runs a command at the server of `slot`, and follows redirects.
    pub(super) async fn run(
        self: &Arc<Self>,
        slot: u16,
        command: &mut ServerCommand<'_>,
    ) -> Result<Value, StoreError> {
        self.until_map_read().await?;
        let (mut server, mut redirects) = (self.server(slot)?, 0);
        loop {
            let Failure { error, action } = match command.run_on(&server).await {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            // A migration ends, and callers have deadlines: `TryAgain` does not count.
            redirects += u8::from(action != FailureAction::TryAgain);
            command.set_asking(false);
            server = match action {
                _ if redirects > REDIRECTS_MAX => return Err(error),
                FailureAction::TryAgain | FailureAction::NotPrimary => {
                    self.request_refresh();
                    tokio::time::sleep(jitter(TRY_AGAIN)).await;
                    self.server(slot)?
                }
                action => {
                    let (server, asking) = self.redirected(slot, &server, &action).ok_or(error)?;
                    command.set_asking(asking);
                    server
                }
            };
        }
    }
}
