//! One connection: its state, deadlines, eviction, bytes, and what comes before HTTP.

mod preamble;
mod protocol;
mod registry;
mod state;
mod stream;
pub(super) mod timer;
mod transport;

pub use protocol::{Protocol, ProtocolConnection};
pub(super) use registry::{Registration, Registry};
pub use state::InFlightRequest;
pub(super) use state::{CloseRequest, ConnectionState, FrontendContext, Stage};
pub(super) use stream::ConnectionStream;
pub use timer::CoarseTimer;
pub(super) use timer::WriteTimeout;
pub(crate) use transport::Transport;

use super::{
    ClientConnection, Handler, ListenerOptions,
    http1::{self, PushbackRead},
    http2,
};
use std::{io, net::SocketAddr, pin::pin, rc::Rc, sync::Arc};
use tokio::{io::AsyncReadExt, net::TcpStream};

/// Serves a connection until either side ends it. Whatever goes wrong on it ends here.
pub(crate) async fn serve<H: Handler>(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    handler: Rc<H>,
    intake: Rc<ListenerOptions>,
    place: Registration,
) {
    let life = &place.life;
    if intake.proxy_protocol {
        let mut reading = pin!(preamble::read_proxy_header(&mut stream));
        match life.until_closed(|context| reading.as_mut().poll(context)).await {
            Some(Ok(source)) => peer = source.unwrap_or(peer),
            _ => return,
        }
    }
    match handler.tls() {
        None => serve_http(Transport::Tcp(stream), peer, handler, place).await,
        Some(config) => Box::pin(serve_tls(stream, config, peer, handler, place)).await,
    }
}

async fn serve_tls<H: Handler>(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    peer: SocketAddr,
    handler: Rc<H>,
    place: Registration,
) {
    if let Some(stream) = preamble::handshake(stream, config, peer, &place.life).await {
        serve_http(Transport::Tls(Box::new(stream.into())), peer, handler, place).await;
    }
}

/// Speaks the version of HTTP that the client begins with.
pub(crate) async fn serve_http<H: Handler>(
    transport: Transport,
    peer: SocketAddr,
    handler: Rc<H>,
    place: Registration,
) {
    let life = place.life.clone();
    let is_tls = matches!(transport, Transport::Tls(_));
    let mut stream = ConnectionStream::new(transport, life.clone());
    let version = {
        let mut sniffing = pin!(sniff(&mut stream));
        life.until_closed(|context| sniffing.as_mut().poll(context)).await
    };
    let caller = Rc::new(ClientConnection::new(peer, is_tls, life.clone()));
    match version {
        Some(Ok(HttpVersion::Http1)) => http1::serve(stream, &*handler, &caller).await,
        // In a box, since connections of HTTP/1.1 would carry it too.
        Some(Ok(HttpVersion::Http2)) => {
            Box::pin(http2::serve(stream.without_vectored_writes(), handler, caller)).await;
        }
        Some(Err(_)) => {}
        None => http1::respond_timeout(&mut stream, &life).await,
    }
}

/// What an HTTP/2 client says first (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpVersion {
    Http1,
    Http2,
}

/// Reads until the bytes differ from the preface or are all of it. They stay to be read again.
async fn sniff(stream: &mut ConnectionStream) -> io::Result<HttpVersion> {
    let mut seen = [0; PREFACE.len()];
    let mut len = 0;
    let version = loop {
        let read = stream.read(&mut seen[len..]).await?;
        len += read;
        match () {
            () if seen[..len] != PREFACE[..len] || read == 0 => break HttpVersion::Http1,
            () if len == PREFACE.len() => break HttpVersion::Http2,
            () => {}
        }
    };
    stream.unread(&seen[..len]);
    Ok(version)
}
