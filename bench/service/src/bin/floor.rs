//! The floor: a bare hyper server on one current-thread runtime that reads a body and answers a
//! constant.
//!
//! `floor [--fields] [--http2] [--tiny]`: with `--fields`, the answer also has the constant headers
//! of a check. With `--tiny`, it has 13 bytes, for the server behind a proxy.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::error::Error;
use tokio::net::{TcpListener, TcpStream};

/// An answer of the check API for a user with one limit, byte for byte.
const BODY: &str = "{\"allowed\":true,\"delay\":0.0,\"retry_after\":0.0,\"source\":\"memory\",\
    \"limits\":[{\"name\":\"per-user\",\"allowed\":true,\"limit\":100000,\"remaining\":99876,\
    \"reset_after\":105.123456,\"retry_after\":0.0,\"mode\":\"enforce\",\"source\":\"memory\"}]}";

const TINY: &str = "hello, world\n";

/// The headers of the default profiles.
const FIELDS: [(HeaderName, &str); 7] = [
    (HeaderName::from_static("cache-control"), "no-store"),
    (HeaderName::from_static("ratelimit"), "\"per-user\";r=99876;t=46"),
    (HeaderName::from_static("ratelimit-policy"), "\"per-user\";q=100000;w=60"),
    (HeaderName::from_static("x-ratelimit-limit"), "100000"),
    (HeaderName::from_static("x-ratelimit-remaining"), "99876"),
    (HeaderName::from_static("x-ratelimit-reset"), "1794744960"),
    (HeaderName::from_static("x-ratelimit-policy"), "100000;w=60"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let (fields, two) = (has("--fields"), has("--http2"));
    let body = if has("--tiny") { TINY } else { BODY };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening http {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve(stream, fields, two, body));
        }
    })
}

async fn serve(stream: TcpStream, fields: bool, two: bool, body: &'static str) {
    let service = service_fn(move |request| answer(request, fields, body));
    let io = TokioIo::new(stream);
    // The load handles broken connections.
    match two {
        true => http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await.ok(),
        false => http1::Builder::new().serve_connection(io, service).await.ok(),
    };
}

async fn answer(
    request: Request<Incoming>,
    fields: bool,
    body: &'static str,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    std::hint::black_box(request.into_body().collect().await?.to_bytes());
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    let headers = response.headers_mut();
    if fields {
        headers.reserve(1 + FIELDS.len());
    }
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if fields {
        headers.extend(FIELDS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    }
    Ok(response)
}
