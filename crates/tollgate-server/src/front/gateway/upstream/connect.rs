//! Connects to an upstream: TCP, TLS, and the HTTP version.

use super::UpstreamServer;
use super::pool::{Http2Connection, Http2Stream, UpstreamConnection};
use crate::front::gateway::exchange::Http2RequestBody;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use std::{future::poll_fn, io, pin::Pin, rc::Rc, time::Duration};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tollgate_net::{Activity, ActivityStream, LocalExecutor, Transport, UpstreamStream};
use tollgate_policy::settings::UpstreamProtocol;

/// Limit of request bytes buffered for an HTTP/2 upstream.
const BUFFER_BYTES: usize = 16 * 1024;
/// Limit of the head of an HTTP/2 response.
const HEAD_BYTES: u32 = 16 * 1024;
/// The HTTP/2 flow-control windows of a response and of a connection.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// The interval of pings on a silent HTTP/2 connection. The next constant is the timeout of the
/// answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to an upstream; with HTTP/1.1 for an upgrade. Dropping the future cancels the attempt.
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
                return Err(io::Error::other("the upstream does not offer HTTP/2"));
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

async fn handshake_http2(inner: Transport) -> hyper::Result<Http2Stream> {
    let activity: Rc<Activity> = Rc::default();
    let stream = ActivityStream { inner, activity: activity.clone() };
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .timer(TokioTimer::new())
        // The upstream would refuse streams above its limit, so streams wait for its settings.
        .initial_max_send_streams(1)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(BUFFER_BYTES)
        .max_header_list_size(HEAD_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    let (sender, mut connection) =
        builder.handshake::<_, Http2RequestBody>(TokioIo::new(stream)).await?;
    let shared = Rc::new(Http2Connection::new(sender, activity));
    let weak = Rc::downgrade(&shared);
    tokio::task::spawn_local(async move {
        let ended = poll_fn(|context| {
            let polled = Pin::new(&mut connection).poll(context);
            if let Some(shared) = weak.upgrade() {
                shared.set_streams_max(connection.current_max_send_streams());
            }
            polled
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "a connection to an upstream failed");
        }
    });
    Ok(shared.stream())
}
