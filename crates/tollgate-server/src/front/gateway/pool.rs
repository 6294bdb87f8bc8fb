//! A worker's connections to the servers.

use super::{
    body::Outgoing,
    upstream::{Flight, Server},
};
use bytes::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    io,
    pin::Pin,
    rc::{Rc, Weak},
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
};
use tokio_rustls::TlsConnector;
use tollgate::ProcessClock;

/// A server's answer is read into at most this at first.
const BUFFER_BYTES: usize = 64 * 1024;
/// A server's head, at most.
const HEAD_BYTES: usize = 64 * 1024;

/// Idle connections by server, the youngest last.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Of which servers.
    generation: Cell<u64>,
    idle: RefCell<Vec<VecDeque<Idle>>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since_us: u64,
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Outgoing>,
    pub(super) shared: Rc<Line>,
    /// Whether it has been used before, so that the server may have closed it in the meantime.
    pub(super) is_used: bool,
}

/// What the task that runs a connection and its user share.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Whether anything has come since the last request was sent.
    pub(super) heard: Cell<bool>,
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
    /// An idle connection to a server that has not been seen to close.
    pub(super) fn take(&self, generation: u64, server: usize) -> Option<Connection> {
        self.renew(generation);
        let mut idle = self.idle.borrow_mut();
        let of_server = idle.get_mut(server)?;
        while let Some(one) = of_server.pop_back() {
            if one.connection.sender.is_ready() {
                return Some(one.connection);
            }
        }
        None
    }

    fn put(&self, generation: u64, server: &Server, connection: Connection, now_us: u64) {
        if self.generation.get() != generation || connection.sender.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if idle.len() <= server.index {
            idle.resize_with(server.index + 1, VecDeque::new);
        }
        let of_server = &mut idle[server.index];
        let too_old = |one: &Idle| now_us.saturating_sub(one.since_us) > server.idle_us;
        while of_server.front().is_some_and(too_old) {
            of_server.pop_front();
        }
        if of_server.len() < server.idle_connections {
            of_server.push_back(Idle { connection, since_us: now_us });
        }
    }

    /// Forgets connections to servers that are no longer the ones in use.
    fn renew(&self, generation: u64) {
        if self.generation.replace(generation) != generation {
            self.idle.borrow_mut().clear();
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
    /// The answer has ended: the connection can be used again as soon as it knows that too.
    pub(super) fn give_back(self) {
        let Self { pool, mut connection, flight } = self;
        let now_us = || ProcessClock.now_us();
        let (generation, server) = (flight.upstreams.generation, flight.server);
        let upstreams = flight.upstreams.clone();
        drop(flight);
        connection.is_used = true;
        if connection.sender.is_ready() {
            pool.put(generation, &upstreams.servers[server], connection, now_us());
        } else if !connection.sender.is_closed() {
            let pool: Weak<Pool> = Rc::downgrade(&pool);
            tokio::task::spawn_local(async move {
                let ready = poll_fn(|context| connection.sender.poll_ready(context)).await;
                if let (Ok(()), Some(pool)) = (ready, pool.upgrade()) {
                    pool.put(generation, &upstreams.servers[server], connection, now_us());
                }
            });
        }
    }
}

/// Connects to a server. Dropping the future gives up.
pub(super) async fn connect(server: &Server) -> io::Result<Connection> {
    let stream = TcpStream::connect((&*server.host, server.port)).await?;
    stream.set_nodelay(true)?;
    let shared: Rc<Line> = Rc::default();
    let stream = match &server.tls {
        None => Transport::Plain(stream),
        Some((config, name)) => {
            let connector = TlsConnector::from(Arc::clone(config));
            Transport::Tls(Box::new(connector.connect(name.clone(), stream).await?))
        }
    };
    let stream = Wired { inner: stream, line: shared.clone() };
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER_BYTES).max_header_size(HEAD_BYTES);
    let (sender, mut connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let line = shared.clone();
    tokio::task::spawn_local(async move {
        let ended = poll_fn(|context| connection.poll_without_shutdown(context)).await;
        if let (Ok(()), Some(heir)) = (ended, line.heir.take()) {
            let parts = connection.into_parts();
            heir.send(Estate { stream: parts.io.into_inner(), left: parts.read_buf }).ok();
        }
    });
    Ok(Connection { sender, shared, is_used: false })
}

/// A stream to a server, encrypted or not.
#[derive(Debug)]
enum Transport {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// A stream that notes when it is heard from.
#[derive(Debug)]
pub(super) struct Wired {
    inner: Transport,
    line: Rc<Line>,
}

/// Calls the same method of whichever stream it is.
macro_rules! whichever {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.inner {
            Transport::Plain($stream) => $call,
            Transport::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Wired {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(whichever!(self, stream => Pin::new(stream).poll_read(context, buffer)))?;
        if buffer.filled().len() > before {
            self.line.heard.set(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wired {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        whichever!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        whichever!(self, stream => Pin::new(stream).poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self.inner, Transport::Plain(_))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        whichever!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        whichever!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}
