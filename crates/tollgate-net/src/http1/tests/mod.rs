//! Tests of HTTP/1.1: heads and chunks alone, and whole connections over pipes in virtual time.

mod body;
mod chunked;
mod differential;
mod parse;
mod pieces;
mod push;
mod server;
mod writer;

use crate::{
    BodyStream, BoxError, ClientConnection, Handler, HttpResponse, Request, RequestBody, Tunnel,
    Upload, tests::rig::seconds,
};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::{HeaderMap, StatusCode, body::Frame};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::Notify,
};

/// The size of `/large`: more than a pipe holds.
const LARGE: usize = 100_000;

/// Answers with the request's method, target, body and trailers. Some paths behave differently.
#[derive(Default)]
struct EchoHandler<const ENDS_WITH_CLIENT: bool = false> {
    /// The answer to each request.
    came: RefCell<Vec<String>>,
    /// Lets `/wait` answer.
    go: Notify,
    /// The number of requests that ended without an answer.
    given_up: Rc<Cell<usize>>,
    /// The upstream's end of a tunnel.
    tunnel: RefCell<Option<DuplexStream>>,
}

/// Counts a request whose future is dropped before it has an answer.
struct CancelCounter {
    given_up: Rc<Cell<usize>>,
    is_answered: bool,
}

impl Drop for CancelCounter {
    fn drop(&mut self) {
        self.given_up.set(self.given_up.get() + usize::from(!self.is_answered));
    }
}

impl<const ENDS_WITH_CLIENT: bool> Handler for EchoHandler<ENDS_WITH_CLIENT> {
    const CANCEL_ON_CLIENT_CLOSE: bool = ENDS_WITH_CLIENT;

    async fn handle(
        &self,
        request: Request<'_>,
        caller: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        let mut watched = CancelCounter { given_up: self.given_up.clone(), is_answered: false };
        let head = request.head;
        let path = head.path().to_owned();
        let text = format!("{} {} ", head.method, head.target);
        let text = match path.starts_with("/early") {
            true => text,
            false => text + &read(request.body).await,
        };
        self.came.borrow_mut().push(text.clone());
        match path.as_str() {
            "/wait" => self.go.notified().await,
            "/large" => answer.body.resize(LARGE, b'x'),
            "/panic" => panic!("as asked"),
            "/interim" => caller.send_interim(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
            "/interim-wait" => {
                caller.send_interim(b"HTTP/1.1 103 Early Hints\r\n\r\n");
                self.go.notified().await;
            }
            "/chunks" | "/early-chunks" => answer.stream = Some(chunks(None)),
            "/trailers" => answer.stream = Some(chunks(Some(text.clone()))),
            "/sized" => answer.stream = Some(sized(&text)),
            "/endless" => answer.stream = Some(endless()),
            "/stuck" => answer.stream = Some(stuck()),
            "/broken" => answer.stream = Some(broken()),
            "/close" => answer.close = true,
            "/upgrade" => self.upgrade(answer),
            _ => {}
        }
        if let Some((_, code)) = path.split_once("/status-") {
            answer.status = StatusCode::from_bytes(code.as_bytes()).unwrap();
            answer.stream = Some(sized(""));
            answer.length = Some(7);
        }
        if answer.body.is_empty() && answer.stream.is_none() && answer.tunnel.is_none() {
            answer.body.extend_from_slice(text.as_bytes());
        }
        watched.is_answered = true;
    }
}

impl<const ENDS_WITH_CLIENT: bool> EchoHandler<ENDS_WITH_CLIENT> {
    fn upgrade(&self, answer: &mut HttpResponse) {
        let (near, far) = tokio::io::duplex(1024);
        *self.tunnel.borrow_mut() = Some(near);
        answer.status = StatusCode::SWITCHING_PROTOCOLS;
        answer.header("upgrade", "echo");
        let (stream, left) = (Box::new(far), Bytes::from_static(b"first of all "));
        answer.tunnel = Some(Tunnel { stream, buffered: left, idle: seconds(60), guard: None });
    }

    fn requests_seen(&self) -> Vec<String> {
        self.came.take()
    }
}

/// The data of a body, with trailers in brackets, or the error.
async fn read(body: RequestBody<'_>) -> String {
    let upload: Upload = match body {
        RequestBody::Full(bytes) => return String::from_utf8_lossy(bytes).into_owned(),
        RequestBody::Stream(upload) => upload,
    };
    match BodyExt::collect(upload).await {
        Err(error) => format!("{error:?}"),
        Ok(collected) => {
            let trailers = collected.trailers().map_or(String::new(), |map| format!("{map:?}"));
            String::from_utf8_lossy(&collected.to_bytes()).into_owned() + &trailers
        }
    }
}

/// A stream of unknown length: three pieces, one of them empty, and an optional trailer.
fn chunks(trailer: Option<String>) -> BodyStream {
    let mut frames: Vec<_> = ["one", "", "three"].map(|text| Frame::data(text.into())).into();
    if let Some(trailer) = trailer {
        let trailers: HeaderMap =
            [("echo".parse().unwrap(), trailer.parse().unwrap())].into_iter().collect();
        frames.push(Frame::trailers(trailers));
    }
    let frames = frames.into_iter().map(Ok::<Frame<Bytes>, BoxError>);
    Box::pin(StreamBody::new(stream::iter(frames)))
}

/// A stream of known length.
fn sized(text: &str) -> BodyStream {
    Box::pin(Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {}))
}

fn endless() -> BodyStream {
    let piece = || Ok::<_, BoxError>(Frame::data(Bytes::from_static(&[b'x'; 10_000])));
    Box::pin(StreamBody::new(stream::repeat_with(piece)))
}

/// A stream with one piece that never ends.
fn stuck() -> BodyStream {
    let piece = Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"one")));
    Box::pin(StreamBody::new(stream::StreamExt::chain(stream::iter([piece]), stream::pending())))
}

/// A stream that fails after its first piece.
fn broken() -> BodyStream {
    let pieces = [Ok(Frame::data(Bytes::from_static(b"one"))), Err(BoxError::from("as asked"))];
    Box::pin(StreamBody::new(stream::iter(pieces)))
}

/// Waits until everything written has been read.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// A request with `body` as its raw chunks.
fn put(path: &str, body: &str) -> String {
    format!("PUT {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{body}")
}

async fn send(client: &mut DuplexStream, text: &str) {
    client.write_all(text.as_bytes()).await.unwrap();
}

async fn ask(client: &mut DuplexStream, request: &str) -> String {
    send(client, request).await;
    crate::tests::rig::answer(client).await.1
}

/// Reads everything until the server closes the connection, without dates.
async fn read_all(client: &mut DuplexStream) -> String {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).await.unwrap();
    undated(&String::from_utf8(bytes).unwrap())
}

/// Reads everything that the server has sent so far, without dates.
async fn read_now(client: &mut DuplexStream) -> String {
    let mut bytes = Vec::new();
    let reading = client.read_to_end(&mut bytes);
    tokio::time::timeout(Duration::from_millis(1), reading).await.ok();
    undated(&String::from_utf8(bytes).unwrap())
}

fn undated(text: &str) -> String {
    let lines = text.split_inclusive("\r\n").filter(|line| !line.starts_with("date: "));
    lines.collect()
}
