//! A worker's connections to the upstreams: by HTTP/1.1 one request after the other, by HTTP/2 many
//! at once.

use super::UpstreamServer;
use crate::{front::gateway::exchange::Http2RequestBody, net::UpstreamStream};
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::{TrySendError, http2},
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::{Rc, Weak},
    time::Duration,
};
use tokio::sync::Mutex;
use tollgate::ProcessClock;

/// How many requests share a connection at most, whatever its upstream would take.
const STREAMS_MAX: usize = 100;

/// Connections by upstream.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// The set of upstreams that the connections belong to.
    generation: Cell<u64>,
    by_server: RefCell<Vec<PooledConnections>>,
    /// Whether a task looks after idle streams.
    is_swept: Cell<bool>,
}

/// The connections to one upstream.
#[derive(Debug, Default)]
struct PooledConnections {
    /// Those of HTTP/1.1 that nobody uses, the youngest last.
    idle: VecDeque<IdleStream>,
    /// Those of HTTP/2, in use or not.
    shared: Vec<Rc<Http2Connection>>,
    /// Held by a request that connects in order to share.
    connect_lock: Rc<Mutex<()>>,
}

/// A stream that nobody reads, so that it has to be looked at whether it has ended.
#[derive(Debug)]
struct IdleStream {
    stream: UpstreamStream,
    until_us: u64,
}

impl IdleStream {
    fn is_stale(&mut self, now_us: u64) -> bool {
        self.stream.is_stale() || self.until_us < now_us
    }
}

/// A connection to an upstream, or a part of one.
#[derive(Debug)]
pub(crate) enum UpstreamConnection {
    Http1(UpstreamStream),
    Http2(Http2Stream),
}

/// What came by a connection of HTTP/2.
#[derive(Debug, Default)]
pub(crate) struct ReadActivity {
    /// Whether anything has come since the last request was sent.
    has_received_since_send: Cell<bool>,
    /// Whether anything has come at all.
    has_received: Cell<bool>,
}

impl ReadActivity {
    pub(crate) fn record_read(&self) {
        self.has_received_since_send.set(true);
        self.has_received.set(true);
    }
}

/// A connection of HTTP/2. It ends when nobody has it any more.
#[derive(Debug)]
pub(crate) struct Http2Connection {
    sender: http2::SendRequest<Http2RequestBody>,
    traffic: Rc<ReadActivity>,
    /// So many requests the upstream takes at once.
    streams_max: Cell<usize>,
    streams: Cell<usize>,
    /// Whether it takes no more requests.
    is_retired: Cell<bool>,
    /// Since when it has not been used.
    idle_since_us: Cell<u64>,
}

impl Http2Connection {
    pub(crate) fn new(
        sender: http2::SendRequest<Http2RequestBody>,
        traffic: Rc<ReadActivity>,
    ) -> Self {
        let idle_since_us = Cell::new(ProcessClock.now_us());
        let (streams, is_retired) = Default::default();
        Self {
            sender,
            traffic,
            streams_max: Cell::new(STREAMS_MAX),
            streams,
            is_retired,
            idle_since_us,
        }
    }

    /// Another request's part of it.
    pub(crate) fn stream(self: &Rc<Self>) -> Http2Stream {
        self.streams.set(self.streams.get() + 1);
        Http2Stream(self.clone())
    }

    /// Notes how many requests the upstream takes, once it has said so.
    pub(crate) fn set_streams_max(&self, most: usize) {
        if self.traffic.has_received.get() {
            self.streams_max.set(most);
        }
    }

    fn has_room(&self) -> bool {
        self.streams.get() < self.streams_max.get().min(STREAMS_MAX)
    }

    fn is_stale(&self, server: &UpstreamServer, now_us: u64) -> bool {
        let is_idle = self.streams.get() == 0;
        let is_old = now_us.saturating_sub(self.idle_since_us.get()) > server.idle_us;
        self.is_retired.get() || self.sender.is_closed() || is_idle && is_old
    }
}

/// One request's part of a connection that others use too.
#[derive(Debug)]
pub(crate) struct Http2Stream(Rc<Http2Connection>);

impl Http2Stream {
    /// A request is about to be sent.
    pub(crate) fn mark_send(&self) {
        // What others hear might be about this one.
        self.0.traffic.has_received_since_send.set(self.0.streams.get() > 1);
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Http2RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Http2RequestBody>>> {
        self.0.sender.clone().try_send_request(request).await
    }

    /// Whether anything may have come in return.
    pub(crate) fn may_have_received(&self) -> bool {
        self.0.traffic.has_received_since_send.get()
    }

    /// Has no more requests sent by the connection.
    pub(crate) fn retire(&self) {
        self.0.is_retired.set(true);
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get() - 1);
        self.0.idle_since_us.set(ProcessClock.now_us());
    }
}

impl Pool {
    /// A connection to an upstream that has not been seen to close; by HTTP/1.1 for a request that
    /// wants to speak something else. Where the request `is_only_once`, because it may not be sent
    /// again, a stream is looked at twice.
    pub(crate) fn take(
        &self,
        generation: u64,
        server: &UpstreamServer,
        is_upgrade: bool,
        is_only_once: bool,
    ) -> Option<UpstreamConnection> {
        self.clear_if_changed(generation);
        let mut by_server = self.by_server.borrow_mut();
        let PooledConnections { idle, shared, .. } = by_server.get_mut(server.index)?;
        let now_us = ProcessClock.now_us();
        if !is_upgrade && !shared.is_empty() {
            shared.retain(|connection| !connection.is_stale(server, now_us));
            if let Some(connection) = shared.iter().find(|connection| connection.has_room()) {
                return Some(UpstreamConnection::Http2(connection.stream()));
            }
        }
        while let Some(mut one) = idle.pop_back() {
            if !(one.is_stale(now_us) || is_only_once && one.stream.peek_is_stale()) {
                return Some(UpstreamConnection::Http1(one.stream));
            }
        }
        None
    }

    /// Keeps a stream for another request. The one that is idle longest makes room.
    pub(crate) fn put(
        self: &Rc<Self>,
        generation: u64,
        server: &UpstreamServer,
        stream: UpstreamStream,
    ) {
        if self.generation.get() != generation || server.idle_connections == 0 {
            return;
        }
        let until_us = ProcessClock.now_us().saturating_add(server.idle_us);
        self.connections(server, |PooledConnections { idle, .. }| {
            if idle.len() >= server.idle_connections {
                idle.pop_front();
            }
            idle.push_back(IdleStream { stream, until_us });
        });
        if !self.is_swept.replace(true) {
            tokio::task::spawn_local(sweep(Rc::downgrade(self)));
        }
    }

    /// Drops streams that have ended or have been idle for too long; whether there are others.
    fn sweep(&self, now_us: u64) -> bool {
        let mut by_server = self.by_server.borrow_mut();
        for PooledConnections { idle, .. } in by_server.iter_mut() {
            idle.retain_mut(|one| !one.is_stale(now_us));
        }
        let is_needed = by_server.iter().any(|connections| !connections.idle.is_empty());
        self.is_swept.set(is_needed);
        is_needed
    }

    /// Lets others use a new connection too, where that is possible.
    pub(crate) fn share(
        &self,
        generation: u64,
        server: &UpstreamServer,
        connection: &UpstreamConnection,
    ) {
        if let UpstreamConnection::Http2(stream) = connection
            && self.generation.get() == generation
        {
            self.connections(server, |connections| connections.shared.push(stream.0.clone()));
        }
    }

    /// For a request that connects in order to share: others wait for it instead of connecting
    /// themselves.
    pub(crate) fn connect_lock(&self, server: &UpstreamServer) -> Rc<Mutex<()>> {
        self.connections(server, |connections| connections.connect_lock.clone())
    }

    fn connections<T>(
        &self,
        server: &UpstreamServer,
        with: impl FnOnce(&mut PooledConnections) -> T,
    ) -> T {
        let mut by_server = self.by_server.borrow_mut();
        if by_server.len() <= server.index {
            by_server.resize_with(server.index + 1, PooledConnections::default);
        }
        with(&mut by_server[server.index])
    }

    /// Forgets connections to upstreams that are no longer the ones in use.
    fn clear_if_changed(&self, generation: u64) {
        if self.generation.replace(generation) != generation {
            self.by_server.borrow_mut().clear();
        }
    }
}

/// How often idle streams are looked at, so that those that an upstream has closed are closed here
/// too.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Looks after idle streams for as long as there are any.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        match pool.upgrade() {
            Some(pool) if pool.sweep(ProcessClock.now_us()) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests;
