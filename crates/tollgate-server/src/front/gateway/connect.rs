//! Connecting to a server: a stream, encrypted or not, and the version of HTTP that is spoken by it.

use super::{
    body::Outgoing,
    pool::{Connection, Estate, Line, Many, Sender},
    upstream::Server,
};
use crate::net::Local;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tollgate_policy::settings::UpstreamProtocol;

/// What is read of a server's answer at once. A client that takes nothing of it keeps about three of these, so that many of
/// them stay within what a node may grow by.
const BUFFER_BYTES: usize = 16 * 1024;
/// A server's head, at most.
const HEAD_BYTES: usize = BUFFER_BYTES;
/// What a server may send by HTTP/2 before it is passed on: of one answer, and of all answers by one connection.
const WINDOW_BYTES: u32 = 256 * 1024;
const WINDOWS_BYTES: u32 = 1024 * 1024;
/// How often a server that says nothing is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WITHIN: Duration = Duration::from_secs(10);

/// Connects to a server; by HTTP/1.1 where the request is one that wants to speak something else afterwards. Dropping the
/// future gives up.
pub(super) async fn connect(server: &Server, upgrade: bool) -> io::Result<Connection> {
    let made = attempt(server, upgrade).await;
    server.note(&made);
    made
}

async fn attempt(server: &Server, upgrade: bool) -> io::Result<Connection> {
    let stream = tcp(server).await?;
    let (stream, two) = match &server.tls {
        None => (Transport::Plain(stream), server.protocol == UpstreamProtocol::Http2),
        Some(tls) => {
            let config = if upgrade { &tls.only_one } else { &tls.config };
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = connector.connect(tls.name.clone(), stream).await?;
            let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            if !two && server.protocol == UpstreamProtocol::Http2 {
                return Err(io::Error::other("the server does not offer HTTP/2"));
            }
            (Transport::Tls(Box::new(stream)), two)
        }
    };
    let shared: Rc<Line> = Rc::default();
    let stream = Wired { inner: stream, line: shared.clone(), again: None };
    let sender = match two {
        false => one(stream, shared.clone()).await,
        true => {
            server.speaks_two.store(true, Relaxed);
            two_of(stream, shared.clone()).await
        }
    };
    Ok(Connection { sender: sender.map_err(io::Error::other)?, shared, is_used: false })
}

/// A stream to a server, with nothing spoken by it yet.
pub(super) async fn plainly(server: &Server) -> io::Result<TcpStream> {
    let made = tcp(server).await;
    server.note(&made);
    made
}

async fn tcp(server: &Server) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((&*server.host, server.port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// An idle stream of HTTP/1.1 as a connection.
pub(super) async fn wrap(stream: TcpStream) -> io::Result<Connection> {
    over(stream, None).await
}

/// A stream by which a request has been sent, and what has come of the answer.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) stream: TcpStream,
    pub(super) came: Box<[u8]>,
}

/// A connection that goes on where somebody else has left off: what it sends first is what has been sent, and goes nowhere, and then it reads what
/// came, and goes on.
pub(super) async fn resume(Resumed { stream, came }: Resumed) -> io::Result<Connection> {
    let again = Again { came, given: 0, is_begun: false, is_sent: false, reader: None };
    let connection = over(stream, Some(again)).await?;
    connection.shared.is_lent.set(true);
    Ok(connection)
}

async fn over(stream: TcpStream, again: Option<Again>) -> io::Result<Connection> {
    let shared: Rc<Line> = Rc::default();
    let stream = Wired { inner: Transport::Plain(stream), line: shared.clone(), again };
    let sender = one(stream, shared.clone()).await.map_err(io::Error::other)?;
    Ok(Connection { sender, shared, is_used: true })
}

async fn one(stream: Wired, line: Rc<Line>) -> hyper::Result<Sender> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER_BYTES).max_header_size(HEAD_BYTES);
    let (sender, mut connection) = builder.handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(async move {
        let ended = poll_fn(|context| connection.poll_without_shutdown(context)).await;
        if let (Ok(()), Some(heir)) = (ended, line.heir.take()) {
            let parts = connection.into_parts();
            heir.send(Estate { stream: parts.io.into_inner(), left: parts.read_buf }).ok();
        }
    });
    Ok(Sender::One(sender))
}

async fn two_of(stream: Wired, line: Rc<Line>) -> hyper::Result<Sender> {
    let mut builder = http2::Builder::new(Local);
    builder
        .timer(TokioTimer::new())
        // Others wait until the server has said how many it takes: what it did not expect it would refuse.
        .initial_max_send_streams(1)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOWS_BYTES)
        .max_send_buf_size(BUFFER_BYTES)
        .max_header_list_size(HEAD_BYTES as u32)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN);
    let (sender, mut connection) = builder.handshake::<_, Outgoing>(TokioIo::new(stream)).await?;
    let many = Rc::new(Many::new(sender, line));
    let told = Rc::downgrade(&many);
    tokio::task::spawn_local(async move {
        let ended = poll_fn(|context| {
            let state = Pin::new(&mut connection).poll(context);
            if let Some(many) = told.upgrade().filter(|many| many.line.greeted.get()) {
                many.most.set(connection.current_max_send_streams());
            }
            state
        })
        .await;
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to a server ended");
        }
    });
    Ok(Sender::Two(many.stream()))
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
    again: Option<Again>,
}

/// What has been done by a stream before it became a connection. Nothing can be read before it has been sent again, since an answer that comes
/// before its request would be a mistake.
#[derive(Debug)]
struct Again {
    came: Box<[u8]>,
    given: usize,
    /// Whether a byte of it has been written again, and whether all have.
    is_begun: bool,
    is_sent: bool,
    reader: Option<Waker>,
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

impl Wired {
    /// The stream alone, unless it is encrypted or something that came by it has not been read.
    pub(super) fn bare(self) -> Option<TcpStream> {
        match (self.inner, self.again) {
            (Transport::Plain(stream), None) => Some(stream),
            _ => None,
        }
    }

    /// Whether what is written now has been sent before.
    fn is_unsent(&mut self) -> bool {
        match &mut self.again {
            Some(again) if !again.is_sent => {
                again.is_begun = true;
                true
            }
            _ => false,
        }
    }
}

impl AsyncRead for Wired {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Some(again) = &mut self.again {
            if !again.is_sent {
                again.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            let rest = &again.came[again.given..];
            let taken = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..taken]);
            again.given += taken;
            if again.given == again.came.len() {
                self.again = None;
            }
            self.line.heard.set(true);
            return Poll::Ready(Ok(()));
        }
        ready!(whichever!(self, stream => Pin::new(stream).poll_read(context, buffer)))?;
        if buffer.filled().len() > before {
            self.line.heard.set(true);
            self.line.greeted.set(true);
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
        if self.is_unsent() {
            return Poll::Ready(Ok(bytes.len()));
        }
        whichever!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_unsent() {
            return Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()));
        }
        whichever!(self, stream => Pin::new(stream).poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self.inner, Transport::Plain(_))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(again) = self.again.as_mut().filter(|again| again.is_begun && !again.is_sent) {
            again.is_sent = true;
            if let Some(reader) = again.reader.take() {
                reader.wake();
            }
        }
        whichever!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        whichever!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}
