//! Connecting to an upstream: a stream, encrypted or not, and the version of HTTP that it speaks.

use super::{
    UpstreamServer,
    pool::{Http2Connection, Http2Stream, ReadActivity, UpstreamConnection},
};
use crate::{
    front::gateway::exchange::Http2RequestBody,
    net::{LocalExecutor, Transport, UpstreamStream},
};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tollgate_policy::settings::UpstreamProtocol;

/// Bytes of a request that wait for an upstream to take them, at most.
const BUFFER_BYTES: usize = 16 * 1024;
/// The head of an upstream's answer, at most.
const HEAD_BYTES: u32 = 16 * 1024;
/// What an upstream may send by HTTP/2 before it is passed on: of one answer, and of all answers by
/// one connection.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// How often an upstream that says nothing is asked whether it is there, and how long it may take
/// to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to an upstream; by HTTP/1.1 for a request that wants to speak something else
/// afterwards. Dropping the future gives up.
pub(crate) async fn connect(
    server: &UpstreamServer,
    is_upgrade: bool,
) -> io::Result<UpstreamConnection> {
    let made = try_connect(server, is_upgrade).await;
    server.record_connect(&made);
    made
}

async fn try_connect(server: &UpstreamServer, is_upgrade: bool) -> io::Result<UpstreamConnection> {
    let stream = TcpStream::connect((&*server.host, server.port)).await?;
    stream.set_nodelay(true)?;
    let (transport, is_http2) = match &server.tls {
        None => (Transport::Tcp(stream), server.protocol == UpstreamProtocol::Http2),
        Some(tls) => {
            let config = if is_upgrade { &tls.http1_config } else { &tls.config };
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = connector.connect(tls.name.clone(), stream).await?;
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            if !is_http2 && server.protocol == UpstreamProtocol::Http2 {
                return Err(io::Error::other("the server does not offer HTTP/2"));
            }
            (Transport::Tls(Box::new(stream.into())), is_http2)
        }
    };
    if !is_http2 {
        return Ok(UpstreamConnection::Http1(UpstreamStream::new(transport)));
    }
    server.speaks_http2.store(true, Relaxed);
    Ok(UpstreamConnection::Http2(handshake_http2(transport).await.map_err(io::Error::other)?))
}

async fn handshake_http2(transport: Transport) -> hyper::Result<Http2Stream> {
    let traffic: Rc<ReadActivity> = Rc::default();
    let stream = TrafficStream { inner: transport, traffic: traffic.clone() };
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .timer(TokioTimer::new())
        // Others wait until the upstream has said how many it takes: it would refuse the rest.
        .initial_max_send_streams(1)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(BUFFER_BYTES)
        .max_header_list_size(HEAD_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let (sender, mut connection) =
        builder.handshake::<_, Http2RequestBody>(TokioIo::new(stream)).await?;
    let shared = Rc::new(Http2Connection::new(sender, traffic));
    let weak = Rc::downgrade(&shared);
    tokio::task::spawn_local(async move {
        let ended = poll_fn(|context| {
            let state = Pin::new(&mut connection).poll(context);
            if let Some(shared) = weak.upgrade() {
                shared.set_streams_max(connection.current_max_send_streams());
            }
            state
        })
        .await;
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to a server ended");
        }
    });
    Ok(shared.stream())
}

/// A stream that notes when something comes by it.
struct TrafficStream {
    inner: Transport,
    traffic: Rc<ReadActivity>,
}

impl AsyncRead for TrafficStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.traffic.record_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrafficStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
