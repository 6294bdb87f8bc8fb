//! A worker's connections to the servers: by HTTP/1 one request after the other, by HTTP/2 many at once.

use super::{
    body::Outgoing,
    connect::Wired,
    upstream::{Flight, Server},
};
use bytes::Bytes;
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use socket2::SockRef;
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    rc::{Rc, Weak},
    task::{Context, Waker},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::TcpStream,
    sync::{Mutex, oneshot},
    task::coop::unconstrained,
};
use tollgate::ProcessClock;

/// How many requests share a connection at most, whatever its server would take.
const STREAMS_MAX: usize = 100;

/// Connections by server.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Of which servers.
    generation: Cell<u64>,
    of: RefCell<Vec<Lines>>,
    /// Whether somebody looks after idle streams.
    is_kept: Cell<bool>,
}

/// The connections to one server.
#[derive(Debug, Default)]
struct Lines {
    /// Those of HTTP/1 that nobody uses, the youngest last.
    idle: VecDeque<Idle>,
    /// Streams of HTTP/1 with nothing around them, likewise.
    bare: VecDeque<Bare>,
    /// Those of HTTP/2, in use or not.
    many: Vec<Rc<Many>>,
    /// Held by whoever connects in order to share.
    connecting: Rc<Mutex<()>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since_us: u64,
}

/// A stream that nobody reads, so that it has to be looked at whether it has ended.
#[derive(Debug)]
pub(super) struct Bare {
    pub(super) stream: TcpStream,
    pub(super) until_us: u64,
}

impl Bare {
    /// Whether something is there to be read that the runtime may not have heard of yet. It costs a call of the system's, and is worth it where the request would be lost.
    fn has_ended(&self) -> bool {
        let peeked = SockRef::from(&self.stream).peek(&mut [MaybeUninit::uninit()]);
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// An idle server says nothing; an end, or an answer to no question, is there to be read. As far as the runtime has heard: it costs nothing.
    fn is_over(&mut self, now_us: u64) -> bool {
        let mut byte = [0];
        let mut byte = ReadBuf::new(&mut byte);
        // Also where a task has done so much already that the runtime would have it wait.
        let read = unconstrained(poll_fn(|context| {
            Pin::new(&mut self.stream).poll_read(context, &mut byte)
        }));
        let read = pin!(read).poll(&mut Context::from_waker(Waker::noop()));
        read.is_ready() || self.until_us < now_us
    }
}

/// A connection to a server, or a part of one.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: Sender,
    pub(super) shared: Rc<Line>,
    /// Whether it has been used before, so that the server may have closed it in the meantime.
    pub(super) is_used: bool,
}

/// What sends requests.
#[derive(Debug)]
pub(super) enum Sender {
    One(http1::SendRequest<Outgoing>),
    Two(Stream),
}

impl Sender {
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Outgoing>>> {
        match self {
            Self::One(sender) => sender.try_send_request(request).await,
            Self::Two(stream) => stream.0.sender.clone().try_send_request(request).await,
        }
    }
}

/// A connection of HTTP/2. It ends when nobody has it any more.
#[derive(Debug)]
pub(super) struct Many {
    sender: http2::SendRequest<Outgoing>,
    pub(super) line: Rc<Line>,
    /// So many requests the server takes at once.
    pub(super) most: Cell<usize>,
    streams: Cell<usize>,
    /// Whether it takes no more requests.
    over: Cell<bool>,
    since_us: Cell<u64>,
}

impl Many {
    pub(super) fn new(sender: http2::SendRequest<Outgoing>, line: Rc<Line>) -> Self {
        let since_us = Cell::new(ProcessClock.now_us());
        let (streams, over) = Default::default();
        Self { sender, line, most: Cell::new(STREAMS_MAX), streams, over, since_us }
    }

    /// Another request's part of it.
    pub(super) fn stream(self: &Rc<Self>) -> Stream {
        self.streams.set(self.streams.get() + 1);
        Stream(self.clone())
    }

    fn has_room(&self) -> bool {
        self.streams.get() < self.most.get().min(STREAMS_MAX)
    }

    fn is_over(&self, server: &Server, now_us: u64) -> bool {
        let idle = self.streams.get() == 0;
        let too_old = now_us.saturating_sub(self.since_us.get()) > server.idle_us;
        self.over.get() || self.sender.is_closed() || idle && too_old
    }
}

/// One request's part of a connection that others use too.
#[derive(Debug)]
pub(super) struct Stream(Rc<Many>);

impl Stream {
    /// Whether nobody else uses it.
    pub(super) fn is_alone(&self) -> bool {
        self.0.streams.get() == 1
    }

    /// Has no more requests sent by it.
    pub(super) fn retire(&self) {
        self.0.over.set(true);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get() - 1);
        self.0.since_us.set(ProcessClock.now_us());
    }
}

/// What the task that runs a connection and its user share.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Whether anything has come since the last request was sent.
    pub(super) heard: Cell<bool>,
    /// Whether anything has come at all.
    pub(super) greeted: Cell<bool>,
    /// Whether its stream was one with nothing around it, and is to be that again.
    pub(super) is_lent: Cell<bool>,
    /// Who gets the stream once it speaks something else.
    pub(super) heir: RefCell<Option<oneshot::Sender<Estate>>>,
}

/// A stream that has left HTTP, and what came by it since.
#[derive(Debug)]
pub(super) struct Estate {
    pub(super) stream: Wired,
    pub(super) left: Bytes,
}

impl Pool {
    /// A connection to a server that has not been seen to close; by HTTP/1 for whoever wants to speak something else.
    pub(super) fn take(
        &self,
        generation: u64,
        server: &Server,
        upgrade: bool,
    ) -> Option<Connection> {
        self.renew(generation);
        let mut of = self.of.borrow_mut();
        let lines = of.get_mut(server.index)?;
        if !upgrade && !lines.many.is_empty() {
            let now_us = ProcessClock.now_us();
            lines.many.retain(|many| !many.is_over(server, now_us));
            if let Some(many) = lines.many.iter().find(|many| many.has_room()) {
                let (sender, shared) = (Sender::Two(many.stream()), many.line.clone());
                return Some(Connection { sender, shared, is_used: true });
            }
        }
        while let Some(Idle { connection, .. }) = lines.idle.pop_back() {
            if matches!(&connection.sender, Sender::One(sender) if sender.is_ready()) {
                return Some(connection);
            }
        }
        None
    }

    /// A stream to a server by which HTTP/1.1 has been spoken, and that has not been seen to close. Where the request `is_only_once`, because it may not be sent again, a stream
    /// is looked at twice.
    pub(super) fn take_bare(
        &self,
        generation: u64,
        server: &Server,
        is_only_once: bool,
    ) -> Option<TcpStream> {
        self.renew(generation);
        let mut of = self.of.borrow_mut();
        let bare = &mut of.get_mut(server.index)?.bare;
        let now_us = ProcessClock.now_us();
        while let Some(mut one) = bare.pop_back() {
            if !(one.is_over(now_us) || is_only_once && one.has_ended()) {
                return Some(one.stream);
            }
        }
        None
    }

    /// Keeps a stream for another request. What is idle longest makes room.
    pub(super) fn put_bare(self: &Rc<Self>, generation: u64, server: &Server, one: Bare) {
        if self.generation.get() != generation || server.idle_connections == 0 {
            return;
        }
        self.lines(server, |Lines { idle, bare, .. }| {
            if idle.len() + bare.len() >= server.idle_connections && idle.pop_front().is_none() {
                bare.pop_front();
            }
            bare.push_back(one);
        });
        if !self.is_kept.replace(true) {
            tokio::task::spawn_local(keep(Rc::downgrade(self)));
        }
    }

    /// Drops streams that have ended or have been idle for too long; whether there are others.
    fn sweep(&self, now_us: u64) -> bool {
        let mut of = self.of.borrow_mut();
        for lines in of.iter_mut() {
            lines.bare.retain_mut(|one| !one.is_over(now_us));
        }
        let is_kept = of.iter().any(|lines| !lines.bare.is_empty());
        self.is_kept.set(is_kept);
        is_kept
    }

    /// Lets others use a new connection too, where that is possible.
    pub(super) fn share(&self, generation: u64, server: &Server, connection: &Connection) {
        if let Sender::Two(stream) = &connection.sender
            && self.generation.get() == generation
        {
            self.lines(server, |lines| lines.many.push(stream.0.clone()));
        }
    }

    /// For whoever connects in order to share: others wait for it instead of connecting themselves.
    pub(super) fn connecting(&self, server: &Server) -> Rc<Mutex<()>> {
        self.lines(server, |lines| lines.connecting.clone())
    }

    fn put(&self, generation: u64, server: &Server, connection: Connection, now_us: u64) {
        if self.generation.get() != generation {
            return;
        }
        self.lines(server, |Lines { idle, bare, .. }| {
            let too_old = |one: &Idle| now_us.saturating_sub(one.since_us) > server.idle_us;
            while idle.front().is_some_and(too_old) {
                idle.pop_front();
            }
            if idle.len() + bare.len() < server.idle_connections {
                idle.push_back(Idle { connection, since_us: now_us });
            }
        });
    }

    fn lines<T>(&self, server: &Server, with: impl FnOnce(&mut Lines) -> T) -> T {
        let mut of = self.of.borrow_mut();
        if of.len() <= server.index {
            of.resize_with(server.index + 1, Lines::default);
        }
        with(&mut of[server.index])
    }

    /// Forgets connections to servers that are no longer the ones in use.
    fn renew(&self, generation: u64) {
        if self.generation.replace(generation) != generation {
            self.of.borrow_mut().clear();
        }
    }
}

/// How often idle streams are looked at, so that those that a server has closed are closed here too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks after idle streams for as long as there are any.
async fn keep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match pool.upgrade() {
            Some(pool) if pool.sweep(ProcessClock.now_us()) => {}
            _ => return,
        }
    }
}

/// A connection in use, and where it goes afterwards.
pub(super) struct Return {
    pub(super) pool: Rc<Pool>,
    pub(super) connection: Connection,
    pub(super) flight: Flight,
}

impl Return {
    /// The answer has ended: the connection can be used again as soon as it knows that too. One that is shared has been used
    /// by others all the time.
    pub(super) fn give_back(self) {
        let Self { pool, connection: Connection { sender, shared, .. }, flight } = self;
        let Sender::One(mut sender) = sender else { return };
        let (upstreams, server) = (flight.upstreams.clone(), flight.server);
        drop(flight);
        let generation = upstreams.generation;
        let put = move |pool: &Pool, server: &Server, sender, shared| {
            let connection = Connection { sender: Sender::One(sender), shared, is_used: true };
            pool.put(generation, server, connection, ProcessClock.now_us());
        };
        let is_lent = shared.is_lent.get();
        if sender.is_ready() && !is_lent {
            return put(&pool, &upstreams.servers[server], sender, shared);
        }
        if sender.is_closed() {
            return;
        }
        let pool: Weak<Pool> = Rc::downgrade(&pool);
        tokio::task::spawn_local(async move {
            let ready = poll_fn(|context| sender.poll_ready(context)).await;
            let (Ok(()), Some(pool)) = (ready, pool.upgrade()) else { return };
            let server = &upstreams.servers[server];
            if !is_lent {
                return put(&pool, server, sender, shared);
            }
            if let Some(stream) = undress(sender, &shared).await {
                let until_us = ProcessClock.now_us().saturating_add(server.idle_us);
                pool.put_bare(generation, server, Bare { stream, until_us });
            }
        });
    }
}

/// The stream of an idle connection, with nothing around it.
async fn undress(sender: http1::SendRequest<Outgoing>, line: &Line) -> Option<TcpStream> {
    let (heir, estate) = oneshot::channel();
    line.heir.replace(Some(heir));
    // Nobody can ask any more by it, so it ends, and its stream does not.
    drop(sender);
    let Estate { stream, left } = estate.await.ok()?;
    stream.bare().filter(|_| left.is_empty())
}

#[cfg(test)]
mod tests;
