//! HTTP/2 clients of HTTP/1.1 upstreams: the requests that upstreams get, and the responses that
//! clients get.

mod lives;
mod same;
mod tokens;

use super::{Gateway, PATIENCE};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response, body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};

/// A hop-by-hop header, which must not change the handling of a request.
const LONG: (&str, &str) = ("proxy-authorization", "basic eDp5");

type EmptyBodyClient = http2::SendRequest<Empty<Bytes>>;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("an end") });
}

async fn connect(gateway: &Gateway) -> EmptyBodyClient {
    let stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
    let (client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<Empty<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("http://x{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).unwrap()
}

/// Requests a path, and reads the whole response.
async fn get(client: &mut EmptyBodyClient, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
    let answer = client.send_request(request("GET", path, fields)).await.unwrap();
    whole(answer).await
}

async fn whole(answer: Response<Incoming>) -> (u16, String) {
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.into()).unwrap())
}
