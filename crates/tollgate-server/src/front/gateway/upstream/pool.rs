//! The pool: a worker's connections to upstreams, reused for HTTP/1.1 and shared for HTTP/2.

use super::{SelectedUpstream, UpstreamServer};
use crate::front::gateway::exchange::Http2RequestBody;
use hyper::client::conn::{TrySendError, http2};
use hyper::{Request, Response, body::Incoming};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::{collections::VecDeque, time::Duration};
use tokio::sync::Mutex;
use tollgate::store::ProcessClock;
use tollgate_net::{Activity, UpstreamStream};

/// Limit of requests in flight on an HTTP/2 connection, even if the upstream allows more.
const STREAMS_MAX: usize = 100;
/// The interval of sweeps, which close idle connections that an upstream has closed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The connections of one worker, by upstream.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// The generation of [`Upstreams`](super::Upstreams) of the connections.
    generation: Cell<u64>,
    by_server: RefCell<Vec<PooledConnections>>,
    /// Whether a task sweeps idle connections.
    is_swept: Cell<bool>,
}

#[derive(Debug, Default)]
struct PooledConnections {
    /// Idle HTTP/1.1 connections, youngest last.
    idle: VecDeque<IdleStream>,
    /// HTTP/2 connections, idle or not.
    shared: Vec<Rc<Http2Connection>>,
    /// Held by a request that opens an HTTP/2 connection. Others wait to share the connection.
    connect_lock: Rc<Mutex<()>>,
}

/// An idle connection, and the time to close it.
type IdleStream = (UpstreamStream, u64);

fn is_stale((stream, until_us): &mut IdleStream, now_us: u64) -> bool {
    stream.is_stale() || *until_us < now_us
}

/// A connection to an upstream, or a stream of a shared one.
#[derive(Debug)]
pub(crate) enum UpstreamConnection {
    Http1(UpstreamStream),
    Http2(Http2Stream),
}

/// An HTTP/2 connection, closed when the last reference is dropped.
#[derive(Debug)]
pub(crate) struct Http2Connection {
    sender: http2::SendRequest<Http2RequestBody>,
    activity: Rc<Activity>,
    /// The number of reads when the last request was sent. `None` if other requests were in flight,
    /// so that a read may belong to this one.
    reads_at_send: Cell<Option<u64>>,
    streams_max: Cell<usize>,
    streams: Cell<usize>,
    /// Whether the connection accepts no more requests.
    is_retired: Cell<bool>,
    idle_since_us: Cell<u64>,
}

impl Http2Connection {
    pub(super) fn new(
        sender: http2::SendRequest<Http2RequestBody>,
        activity: Rc<Activity>,
    ) -> Self {
        Self {
            sender,
            activity,
            reads_at_send: Cell::default(),
            streams_max: Cell::new(STREAMS_MAX),
            streams: Cell::default(),
            is_retired: Cell::default(),
            idle_since_us: Cell::new(ProcessClock.now_us()),
        }
    }

    pub(super) fn stream(self: &Rc<Self>) -> Http2Stream {
        self.streams.update(|streams| streams + 1);
        Http2Stream(self.clone())
    }

    /// Sets the number of requests that the upstream allows, once its settings have arrived.
    pub(super) fn set_streams_max(&self, streams_max: usize) {
        if self.activity.reads.get() > 0 {
            self.streams_max.set(streams_max.min(STREAMS_MAX));
        }
    }

    fn is_stale(&self, server: &UpstreamServer, now_us: u64) -> bool {
        let is_idle = self.streams.get() == 0;
        let is_old = now_us.saturating_sub(self.idle_since_us.get()) > server.idle_us;
        self.is_retired.get() || self.sender.is_closed() || is_idle && is_old
    }
}

/// One request's stream on an HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Http2Stream(Rc<Http2Connection>);

impl Http2Stream {
    /// Records that a request is about to be sent.
    pub(crate) fn mark_send(&self) {
        let is_alone = self.0.streams.get() == 1;
        self.0.reads_at_send.set(is_alone.then(|| self.0.activity.reads.get()));
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Http2RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Http2RequestBody>>> {
        self.0.sender.clone().try_send_request(request).await
    }

    /// Whether part of a response may have arrived.
    pub(crate) fn may_have_received(&self) -> bool {
        self.0.reads_at_send.get() != Some(self.0.activity.reads.get())
    }

    /// Stops sending requests over the connection.
    pub(crate) fn retire(&self) {
        self.0.is_retired.set(true);
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.0.streams.update(|streams| streams - 1);
        self.0.idle_since_us.set(ProcessClock.now_us());
    }
}

impl Pool {
    /// Takes a connection that is not known to be closed. An upgrade needs HTTP/1.1. A request that
    /// `is_only_once` must not be sent again, so its connection is also checked with a system call.
    pub(crate) fn take(
        &self,
        selected: &SelectedUpstream,
        now_us: u64,
        is_upgrade: bool,
        is_only_once: bool,
    ) -> Option<UpstreamConnection> {
        let generation = selected.upstreams.generation;
        if self.generation.replace(generation) != generation {
            self.by_server.borrow_mut().clear();
        }
        let mut by_server = self.by_server.borrow_mut();
        let PooledConnections { idle, shared, .. } = by_server.get_mut(selected.server)?;
        if !is_upgrade && !shared.is_empty() {
            shared.retain(|connection| !connection.is_stale(selected.server(), now_us));
            let has_room = |connection: &&Rc<Http2Connection>| {
                connection.streams.get() < connection.streams_max.get()
            };
            if let Some(connection) = shared.iter().find(has_room) {
                return Some(UpstreamConnection::Http2(connection.stream()));
            }
        }
        while let Some(mut one) = idle.pop_back() {
            if !(is_stale(&mut one, now_us) || is_only_once && one.0.peek_is_stale()) {
                return Some(UpstreamConnection::Http1(one.0));
            }
        }
        None
    }

    /// Keeps an idle connection, and drops the oldest if there are too many.
    pub(crate) fn put(
        self: &Rc<Self>,
        selected: &SelectedUpstream,
        stream: UpstreamStream,
        now_us: u64,
    ) {
        let server = selected.server();
        if self.generation.get() != selected.upstreams.generation || server.idle_connections == 0 {
            return;
        }
        let until_us = now_us.saturating_add(server.idle_us);
        self.connections(server, |PooledConnections { idle, .. }| {
            if idle.len() >= server.idle_connections {
                idle.pop_front();
            }
            idle.push_back((stream, until_us));
        });
        if !self.is_swept.replace(true) {
            tokio::task::spawn_local(sweep(Rc::downgrade(self)));
        }
    }

    /// Drops stale idle connections. Returns whether others are left.
    fn sweep(&self, now_us: u64) -> bool {
        let mut by_server = self.by_server.borrow_mut();
        for PooledConnections { idle, .. } in by_server.iter_mut() {
            idle.retain_mut(|one| !is_stale(one, now_us));
        }
        let is_needed = by_server.iter().any(|connections| !connections.idle.is_empty());
        self.is_swept.set(is_needed);
        is_needed
    }

    /// Lets other requests use a new HTTP/2 connection.
    pub(crate) fn share(&self, selected: &SelectedUpstream, connection: &UpstreamConnection) {
        if let UpstreamConnection::Http2(Http2Stream(shared)) = connection
            && self.generation.get() == selected.upstreams.generation
        {
            self.connections(selected.server(), |pooled| pooled.shared.push(shared.clone()));
        }
    }

    pub(crate) fn connect_lock(&self, server: &UpstreamServer) -> Rc<Mutex<()>> {
        self.connections(server, |pooled| pooled.connect_lock.clone())
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
}

/// Sweeps idle connections while there are any.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        match pool.upgrade() {
            Some(pool) if pool.sweep(ProcessClock.now_us()) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests;
