//! Upstreams that speak HTTP/2, and upstreams that offer it.

mod alpn;
mod grpc;
mod lines;

use super::Gateway;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Barrier,
};
use tokio_rustls::TlsAcceptor;

/// An HTTP/2 upstream; with TLS, ALPN chooses the version.
#[derive(Clone)]
struct Two {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

/// Its behaviour.
#[derive(Clone, Default)]
struct Manner {
    tls: Option<Arc<rustls::ServerConfig>>,
    /// The limit of concurrent streams.
    streams: Option<u32>,
    /// Whether it drains a connection with GOAWAY after its first response.
    brief: bool,
    /// Answers `/together` once this many requests for it are in flight.
    together: usize,
}

impl Two {
    fn new(manner: Manner) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<AtomicUsize> = Arc::default();
        let count = connections.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                let together = Arc::new(Barrier::new(manner.together.max(1)));
                while let Ok((stream, _)) = listener.accept().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    let (manner, together) = (manner.clone(), together.clone());
                    tokio::spawn(async move {
                        let Some(config) = manner.tls.clone() else {
                            return two(stream, &manner, together).await;
                        };
                        let stream = TlsAcceptor::from(config).accept(stream).await;
                        let Ok(stream) = stream else { return };
                        match stream.get_ref().1.alpn_protocol() {
                            Some(b"h2") => two(stream, &manner, together).await,
                            _ => one(stream, together).await,
                        }
                    });
                }
            });
        });
        Self { address, connections }
    }

    /// A gateway in front of it.
    fn gateway(&self, more: &str) -> Gateway {
        Gateway::new(&format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'http://{}', protocol: http2}}\n{more}\n",
            self.address
        ))
    }
}

async fn two(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    manner: &Manner,
    together: Arc<Barrier>,
) {
    let answered = Arc::new(tokio::sync::Notify::new());
    let told = answered.clone();
    let service = service_fn(move |request| {
        told.notify_one();
        answer(request, together.clone())
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_concurrent_streams(manner.streams);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = &mut connection => return,
        () = answered.notified(), if manner.brief => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await.ok();
}

async fn one(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, together: Arc<Barrier>) {
    let service = service_fn(move |request| answer(request, together.clone()));
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

/// Answers with the version, method, target, host, trailer and body of the request. `/stream`
/// echoes the body as it arrives.
async fn answer(
    request: Request<Incoming>,
    together: Arc<Barrier>,
) -> Result<Response<BoxBody<Bytes, hyper::Error>>, Infallible> {
    let (head, body) = request.into_parts();
    if head.uri.path() == "/together" {
        together.wait().await;
    }
    if head.uri.path() == "/stream" {
        return Ok(Response::new(body.boxed()));
    }
    let host = head.uri.authority().map(ToString::to_string);
    let host = host.or_else(|| Some(head.headers.get("host")?.to_str().ok()?.to_owned()));
    let body = body.collect().await.unwrap();
    let trailer = body.trailers().and_then(|all| Some(all.get("x-end")?.to_str().ok()?.to_owned()));
    let text = format!(
        "{:?} {} {} {} {:?} {}",
        head.version,
        head.method,
        head.uri.path_and_query().unwrap(),
        host.unwrap_or_default(),
        trailer,
        String::from_utf8_lossy(&body.to_bytes())
    );
    if head.uri.path() != "/trailers" {
        return Ok(Response::new(Full::from(text).map_err(|never| match never {}).boxed()));
    }
    let mut trailers = hyper::HeaderMap::new();
    trailers.insert("x-sum", "7".parse().unwrap());
    let frames = [Frame::data(Bytes::from(text)), Frame::trailers(trailers)];
    let frames = futures_util::stream::iter(frames.map(Ok::<_, hyper::Error>));
    let response = Response::builder().header("trailer", "x-sum");
    Ok(response.body(BodyExt::boxed(StreamBody::new(frames))).unwrap())
}
