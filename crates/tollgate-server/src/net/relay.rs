//! Connections whose requests go on to somebody else: bodies stream, and a connection may leave HTTP.

mod body;
mod plain;

use super::{
    connection::{HTTP1_FIELDS, serve_http2, too_slow},
    figures,
    handshake::handshake,
    headless::{tell_length, wants_head},
    life::{Life, Order},
    plain::End,
    proxy_header,
    registry::Place,
    sniff::{Version, sniff},
    stream::Stream,
    strict::{Back, Strict, Wire},
    tunnel::{self, Tunnel},
};
use body::Alive;
use bytes::Bytes;
use hyper::{
    StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue, UPGRADE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    any::Any,
    cell::{Cell, RefCell},
    convert::Infallible,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tollgate_policy::address::unmap;

pub use body::Upload;
pub use plain::Bare;
pub(crate) use plain::{is_host, is_plain_field, is_plain_target};

/// Whatever ends a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests with bodies that stream. There is one for each worker, as of a [`Handler`](super::Handler).
pub trait Relay: 'static {
    /// What answers carry.
    type Body: hyper::body::Body<Data = Bytes, Error = BoxError> + Unpin + 'static;

    /// Answers a request.
    fn relay(
        &self,
        request: hyper::Request<Upload>,
        caller: &Rc<Caller>,
    ) -> impl Future<Output = hyper::Response<Self::Body>>;

    /// Answers a request that has come whole in fewer steps, by the bytes of the whole answer in `out`; or answers `false`, and then the request comes
    /// to [`relay`](Self::relay), which may find what has been done about it in [`Caller::kept`]. Dropped when the client leaves.
    fn plain(
        &self,
        _request: Bare<'_>,
        _caller: &Rc<Caller>,
        _out: &mut Vec<u8>,
    ) -> impl Future<Output = bool> {
        std::future::ready(false)
    }

    /// The TLS to speak with whoever connects now; `None` for a listener without.
    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        None
    }
}

/// How connections begin.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Intake {
    /// Whether each has to begin with a header of the PROXY protocol, version 2. None may otherwise.
    pub proxy_protocol: bool,
}

/// The connection that a request came by.
#[derive(Debug)]
#[non_exhaustive]
pub struct Caller {
    /// Who is at its other end, or who a load balancer says is.
    pub peer: SocketAddr,
    /// The peer's address alone, as text.
    pub address: HeaderValue,
    /// Whether it is encrypted.
    pub is_tls: bool,
    /// Whether what comes by it may upgrade it.
    pub may_upgrade: bool,
    life: Rc<Life>,
    wire: Rc<Wire>,
    tunnel: RefCell<Option<Tunnel>>,
    kept: RefCell<Option<Box<dyn Any>>>,
    /// How many plain requests in a row went the long way all the same.
    declined: Cell<u32>,
}

impl Caller {
    fn new(peer: SocketAddr, is_tls: bool, version: Version, life: Rc<Life>) -> Self {
        let address = unmap(peer.ip()).to_string();
        Self {
            peer,
            // Of what an address consists of it cannot fail.
            address: HeaderValue::try_from(address).unwrap_or(HeaderValue::from_static("unknown")),
            is_tls,
            may_upgrade: version == Version::Http1,
            wire: Rc::new(Wire::new(life.clone())),
            life,
            tunnel: RefCell::default(),
            kept: RefCell::default(),
            declined: Cell::default(),
        }
    }

    /// A deadline for something that a request waits for.
    pub fn alarm(&self) -> super::Alarm {
        super::Alarm::new(self.life.alarms.clone())
    }

    /// Whether the connection ends after the next answer, which has to say so.
    pub fn is_ending(&self) -> bool {
        self.life.order() != Order::Serve
    }

    /// Keeps what has been done about a request for [`Relay::relay`], which gets it next.
    pub fn keep(&self, begun: Box<dyn Any>) {
        self.kept.replace(Some(begun));
    }

    /// What has been kept.
    pub fn kept<T: 'static>(&self) -> Option<Box<T>> {
        self.kept.take()?.downcast().ok()
    }

    /// Joins the connection to another one, once an answer of 101 has been sent.
    pub fn join(&self, tunnel: Tunnel) {
        self.tunnel.replace(Some(tunnel));
    }
}

/// A request that has no whole answer yet.
#[derive(Debug)]
struct Busy(Rc<Life>);

impl Busy {
    fn new(life: &Rc<Life>) -> Self {
        life.begin();
        Self(life.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish();
        if std::thread::panicking() {
            super::Stats::add(&self.0.front.stats.panics);
        }
    }
}

/// Serves a connection until either side ends it.
pub(super) async fn serve<R: Relay>(
    mut stream: TcpStream,
    mut peer: SocketAddr,
    relay: Rc<R>,
    intake: Rc<Intake>,
    place: Place,
) {
    let life = place.life.clone();
    if intake.proxy_protocol {
        let mut reading = std::pin::pin!(proxy_header::read(&mut stream));
        match life.until_closed(|context| reading.as_mut().poll(context)).await {
            Some(Ok(source)) => peer = source.unwrap_or(peer),
            _ => return,
        }
    }
    match relay.tls() {
        None => {
            let mut stream = Stream::new(stream, life.clone());
            let version = {
                let mut sniffing = std::pin::pin!(sniff(&mut stream));
                life.until_closed(|context| sniffing.as_mut().poll(context)).await
            };
            match version {
                Some(Ok(version)) => http(stream, version, peer, false, relay, life).await,
                Some(Err(_)) => {}
                None => too_slow(stream, &life).await,
            }
        }
        Some(config) => Box::pin(encrypted(stream, config, peer, relay, life)).await,
    }
}

/// The same over TLS.
async fn encrypted<R: Relay>(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    peer: SocketAddr,
    relay: Rc<R>,
    life: Rc<Life>,
) {
    let Some(stream) = handshake(stream, config, peer, &life).await else { return };
    let version = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Version::Http2,
        _ => Version::Http1,
    };
    let stream = Stream::new(stream, life.clone());
    http(stream, version, peer, true, relay, life).await;
}

pub(super) async fn http<T, R>(
    mut stream: Stream<T>,
    version: Version,
    peer: SocketAddr,
    is_tls: bool,
    relay: Rc<R>,
    life: Rc<Life>,
) where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    R: Relay,
{
    let caller = Rc::new(Caller::new(peer, is_tls, version, life.clone()));
    // The full protocol is in a box, since most connections never need it and would carry it all the same.
    if version == Version::Http2 {
        let service =
            service_fn(move |request| Box::pin(answer(relay.clone(), caller.clone(), request)));
        return Box::pin(serve_http2(stream, service, &life)).await;
    }
    loop {
        match plain::serve(&mut stream, &*relay, &caller).await {
            End::Unusual => {}
            End::Closed => return too_slow(stream, &life).await,
            End::Done => return,
        }
        match Box::pin(http1_in_full(stream, relay.clone(), caller.clone())).await {
            Some(back) => stream = back,
            None => return,
        }
    }
}

/// The full protocol of HTTP/1. The stream where it goes on, with a request that is not for the full protocol.
async fn http1_in_full<T, R>(
    stream: Stream<T>,
    relay: Rc<R>,
    caller: Rc<Caller>,
) -> Option<Stream<T>>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    R: Relay,
{
    let life = caller.life.clone();
    let service = {
        let caller = caller.clone();
        service_fn(move |request| Box::pin(answer(relay.clone(), caller.clone(), request)))
    };
    let limits = &life.front.limits;
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes_max.max(8192))
        .max_header_size(limits.head_bytes_max);
    if limits.fields_max != HTTP1_FIELDS {
        builder.max_headers(limits.fields_max);
    }
    let back = Back::new(life.clone(), plain::patience(&caller), plain::is_plain);
    let strict = Strict::new(stream, caller.wire.clone(), limits.head_bytes_max).until(back);
    let mut connection = builder.serve_connection(TokioIo::new(strict), service);
    let ended = life.until_closed(|context| connection.poll_without_shutdown(context)).await;
    let parts = connection.into_parts();
    let strict = parts.io.into_inner();
    let is_over = strict.is_over();
    let tunnel = caller.tunnel.take();
    let mut left = parts.read_buf.to_vec();
    left.extend_from_slice(strict.left());
    let mut stream = strict.into_inner();
    match (ended, tunnel) {
        (None, _) => too_slow(stream, &life).await,
        (Some(_), Some(tunnel)) => {
            let _busy = Busy::new(&life);
            tunnel::run(stream, left, tunnel, caller.alarm(), &life).await;
        }
        (Some(Ok(())), None) if is_over => {
            // What was kept was about a request that is over.
            caller.kept.take();
            stream.unread(&left);
            return Some(stream);
        }
        (Some(_), None) => {
            let mut ending = std::pin::pin!(stream.shutdown());
            life.until_closed(|context| ending.as_mut().poll(context)).await;
        }
    }
    None
}

/// Answers one request.
async fn answer<R: Relay>(
    relay: Rc<R>,
    caller: Rc<Caller>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Alive<R::Body>>, Infallible> {
    let life = &caller.life;
    let busy = Busy::new(life);
    if request.headers().len() > life.front.limits.fields_max {
        let mut response = hyper::Response::new(Alive::empty(busy));
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Ok(response);
    }
    let settled = request
        .headers()
        .contains_key(UPGRADE)
        .then(|| Settled { wire: &caller.wire, upgraded: Cell::new(false) });
    let is_headless = wants_head(&request);
    let request = request.map(|incoming| Upload::new(incoming, life.clone()));
    let mut response = relay.relay(request, &caller).await;
    figures::keep_out(response.headers_mut(), life);
    let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if let Some(settled) = settled {
        settled.upgraded.set(upgraded);
    }
    if life.order() != Order::Serve && !upgraded {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if is_headless {
        tell_length(&mut response);
        return Ok(response.map(|_| Alive::empty(busy)));
    }
    Ok(response.map(|body| Alive::new(body, busy)))
}

/// Lets the connection go on, one way or the other, once an answer is there or nobody waits for it any more.
struct Settled<'a> {
    wire: &'a Wire,
    upgraded: Cell<bool>,
}

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.wire.settle(self.upgraded.get());
    }
}

#[cfg(test)]
mod tests;
