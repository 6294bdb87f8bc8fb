//! The floor of a proxy on hyper: hyper's server, and hyper-util's client with its pool, on one
//! current-thread runtime.
//!
//! `proxy_floor HOST:PORT [--http2]`: forwards every request unchanged to that server, by HTTP/1.1.

use hyper::body::Incoming;
use hyper::http::uri::{Authority, Scheme};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::error::Error;
use tokio::net::{TcpListener, TcpStream};

type Pool = Client<HttpConnector, Incoming>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let server: Authority = arguments.get(1).ok_or("which server?")?.parse()?;
    let two = arguments.iter().any(|argument| argument == "--http2");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let pool: Pool = Client::builder(TokioExecutor::new()).build(connector);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening http {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve(stream, pool.clone(), server.clone(), two));
        }
    })
}

async fn serve(stream: TcpStream, pool: Pool, server: Authority, two: bool) {
    let service = service_fn(move |request| pass(request, pool.clone(), server.clone()));
    let io = TokioIo::new(stream);
    // The load handles broken connections.
    match two {
        true => http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await.ok(),
        false => http1::Builder::new().serve_connection(io, service).await.ok(),
    };
}

async fn pass(
    mut request: Request<Incoming>,
    pool: Pool,
    server: Authority,
) -> Result<Response<Incoming>, ClientError> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(server);
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    *request.version_mut() = hyper::Version::HTTP_11;
    pool.request(request).await
}
