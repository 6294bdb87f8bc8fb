//! One connection, from its first byte to the protocol that it speaks.

use super::{
    Caller, Handler, Intake,
    handshake::handshake,
    http1, http2, proxy_header,
    registry::Place,
    sniff::{Version, sniff},
    stream::Stream,
    transport::Transport,
};
use std::{net::SocketAddr, pin::pin, rc::Rc, sync::Arc};
use tokio::net::TcpStream;

/// Serves a connection until either side ends it. Whatever goes wrong on it ends here.
pub(super) async fn serve<H: Handler>(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    handler: Rc<H>,
    intake: Rc<Intake>,
    place: Place,
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
        None => speak(Transport::Tcp(stream), peer, handler, place).await,
        Some(config) => Box::pin(encrypted(stream, config, peer, handler, place)).await,
    }
}

async fn encrypted<H: Handler>(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    peer: SocketAddr,
    handler: Rc<H>,
    place: Place,
) {
    if let Some(stream) = handshake(stream, config, peer, &place.life).await {
        speak(Transport::Tls(Box::new(stream.into())), peer, handler, place).await;
    }
}

/// Speaks the version of HTTP that the client begins with.
pub(super) async fn speak<H: Handler>(
    transport: Transport,
    peer: SocketAddr,
    handler: Rc<H>,
    place: Place,
) {
    let life = place.life.clone();
    let is_tls = matches!(transport, Transport::Tls(_));
    let mut stream = Stream::new(transport, life.clone());
    let version = {
        let mut sniffing = pin!(sniff(&mut stream));
        life.until_closed(|context| sniffing.as_mut().poll(context)).await
    };
    let caller = Rc::new(Caller::new(peer, is_tls, life.clone()));
    match version {
        Some(Ok(Version::Http1)) => http1::serve(stream, &*handler, &caller).await,
        // In a box, since connections of HTTP/1.1 would carry it too.
        Some(Ok(Version::Http2)) => {
            Box::pin(http2::serve(stream.together(), handler, caller)).await;
        }
        Some(Err(_)) => {}
        None => http1::too_slow(&mut stream, &life).await,
    }
}
