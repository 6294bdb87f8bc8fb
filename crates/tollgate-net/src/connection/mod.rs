//! Connections: state, deadlines, eviction, transport, and the bytes before HTTP.

mod preamble;
mod protocol;
mod registry;
mod state;
mod stream;
mod timer;
mod transport;

pub(super) use protocol::protocol_service;
pub use protocol::{Protocol, ProtocolConnection};
pub(super) use registry::{Registration, Registry};
pub use state::InFlightRequest;
pub(super) use state::{CloseRequest, ConnectionState, Stage};
pub(super) use stream::{ConnectionStream, push_back, read_pushed_back};
pub use timer::CoarseTimer;
pub(super) use timer::WriteTimeout;
pub use transport::{Activity, ActivityStream, Transport};

use super::accept::worker::ConnectionService;
use super::http1::{self, PushbackRead};
use super::{ClientConnection, Handler, ListenerOptions, http2};
use std::{io, net::SocketAddr, pin::pin, rc::Rc};
use tokio::{io::AsyncReadExt, net::TcpStream, task::spawn_local};

/// The first bytes of an HTTP/2 client (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The connection service of one worker for one HTTP handler.
pub(super) fn http_service<H: Handler>(
    handler: H,
    options: ListenerOptions,
) -> Box<ConnectionService> {
    let handler = Rc::new(handler);
    Box::new(move |stream, peer, registration, guard| {
        let handler = handler.clone();
        spawn_local(async move {
            let _guard = guard;
            serve(stream, peer, handler, options, registration).await;
        });
    })
}

/// Serves a connection until either side closes it. Errors end here.
async fn serve<H: Handler>(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    handler: Rc<H>,
    options: ListenerOptions,
    registration: Registration,
) {
    let state = &registration.state;
    if options.proxy_protocol {
        let mut reading = pin!(preamble::read_proxy_header(&mut stream));
        match state.until_closed(|context| reading.as_mut().poll(context)).await {
            Some(Ok(source)) => peer = source.unwrap_or(peer),
            _ => return,
        }
    }
    match handler.tls() {
        None => serve_http(Transport::Tcp(stream), peer, handler, registration).await,
        // Boxed: keeps the TLS handshake out of the futures of plain connections.
        Some(config) => {
            Box::pin(async move {
                let tls = preamble::handshake(stream, config, peer, &registration.state).await;
                if let Some(stream) = tls {
                    let transport = Transport::Tls(Box::new(stream.into()));
                    serve_http(transport, peer, handler, registration).await;
                }
            })
            .await
        }
    }
}

/// Serves the version of HTTP that the client speaks.
pub(super) async fn serve_http<H: Handler>(
    transport: Transport,
    peer: SocketAddr,
    handler: Rc<H>,
    registration: Registration,
) {
    let state = registration.state.clone();
    let is_tls = matches!(transport, Transport::Tls(_));
    let mut stream = ConnectionStream::new(transport, state.clone());
    let is_http2 = {
        let mut sniffing = pin!(starts_with_preface(&mut stream));
        state.until_closed(|context| sniffing.as_mut().poll(context)).await
    };
    let caller = Rc::new(ClientConnection::new(peer, is_tls, state.clone()));
    match is_http2 {
        Some(Ok(false)) => http1::serve(stream, &*handler, &caller).await,
        // Boxed: keeps HTTP/2 out of the futures of HTTP/1.1 connections.
        Some(Ok(true)) => Box::pin(http2::serve(stream, handler, caller)).await,
        Some(Err(_)) => {}
        None => http1::respond_timeout(&mut stream, &state).await,
    }
}

/// Whether the stream starts with the HTTP/2 preface. Pushes the bytes back.
async fn starts_with_preface(stream: &mut ConnectionStream) -> io::Result<bool> {
    let mut seen = [0; PREFACE.len()];
    let mut len = 0;
    let is_http2 = loop {
        let read = stream.read(&mut seen[len..]).await?;
        len += read;
        if read == 0 || seen[..len] != PREFACE[..len] {
            break false;
        }
        if len == PREFACE.len() {
            break true;
        }
    };
    stream.unread(&seen[..len]);
    Ok(is_http2)
}
