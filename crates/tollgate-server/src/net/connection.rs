//! One connection, from its first byte to the protocol that it speaks.

use super::{
    ClientConnection, Handler, ListenerOptions,
    handshake::handshake,
    http1, http2, proxy_header,
    registry::Registration,
    sniff::{HttpVersion, sniff},
    stream::ConnectionStream,
    transport::Transport,
};
use std::{net::SocketAddr, pin::pin, rc::Rc, sync::Arc};
use tokio::net::TcpStream;

/// Serves a connection until either side ends it. Whatever goes wrong on it ends here.
pub(super) async fn serve<H: Handler>(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    handler: Rc<H>,
    intake: Rc<ListenerOptions>,
    place: Registration,
) {
    let life = &place.life;
    if intake.proxy_protocol {
        let mut reading = pin!(proxy_header::read(&mut stream));
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
    if let Some(stream) = handshake(stream, config, peer, &place.life).await {
        serve_http(Transport::Tls(Box::new(stream.into())), peer, handler, place).await;
    }
}

/// Speaks the version of HTTP that the client begins with.
pub(super) async fn serve_http<H: Handler>(
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
