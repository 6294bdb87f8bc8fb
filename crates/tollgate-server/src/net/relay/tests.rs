//! Connections over pipes: which way each request takes, and that it is the same request by either.

mod back;
mod pieces;

use super::{BoxError, Caller, Relay, Upload, http};
use crate::net::{
    Limits, Stats,
    life::{Life, Terms},
    registry::Registry,
    relay::{Bare, Version},
    worker::look_after,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::Notify,
    task::LocalSet,
};

/// More than a pipe takes at once, ten thousand times.
const LARGE: &str = "0123456789";

/// Answers with the request's line and body, and notes by which way it came.
#[derive(Default)]
struct Desk {
    came: RefCell<Vec<(Way, String)>>,
    /// Lets `/wait` answer.
    go: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Short,
    /// It was declined on the short way first.
    Declined,
    Long,
}

type Reply = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

impl Relay for Desk {
    type Body = Reply;

    async fn relay(
        &self,
        request: hyper::Request<Upload>,
        caller: &Rc<Caller>,
    ) -> hyper::Response<Reply> {
        let way = caller.kept::<Way>().map_or(Way::Long, |way| *way);
        let path = request.uri().path().to_owned();
        let line = format!("{} {}", request.method(), request.uri());
        // What comes of the body is not waited for by everybody.
        let body = match &*path {
            "/early" => Bytes::new(),
            _ => request.into_body().collect().await.map_or(Bytes::new(), Collected::to_bytes),
        };
        let mut text = format!("{line} {}", String::from_utf8_lossy(&body));
        self.came.borrow_mut().push((way, text.clone()));
        match &*path {
            "/wait" => self.go.notified().await,
            "/large" => text = LARGE.repeat(10_000),
            _ => {}
        }
        hyper::Response::new(Full::from(text).map_err(|never| match never {}).boxed_unsync())
    }

    async fn plain(&self, request: Bare<'_>, caller: &Rc<Caller>, out: &mut Vec<u8>) -> bool {
        if request.target.starts_with("/declined") {
            caller.keep(Box::new(Way::Declined));
            return false;
        }
        let body = String::from_utf8_lossy(request.body);
        let text = format!("{} {} {body}", request.method, request.target);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len());
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(text.as_bytes());
        self.came.borrow_mut().push((Way::Short, text));
        true
    }
}

/// A worker without sockets.
struct Rig {
    registry: Rc<Registry>,
    terms: Rc<Terms>,
    desk: Rc<Desk>,
}

impl Rig {
    fn new() -> Self {
        let limits = Limits::default();
        let registry = Rc::new(Registry::new(limits.tick));
        let looked_after = registry.clone();
        tokio::task::spawn_local(async move { look_after(&looked_after).await });
        let terms = Terms { index: 0, limits, stats: Arc::<Stats>::default() };
        Self { registry, terms: Rc::new(terms), desk: Rc::default() }
    }

    fn connect(&self) -> DuplexStream {
        self.connect_with(64 * 1024)
    }

    fn connect_with(&self, room: usize) -> DuplexStream {
        self.connect_and_see(room).0
    }

    fn connect_and_see(&self, room: usize) -> (DuplexStream, Rc<Life>) {
        let (near, far) = tokio::io::duplex(room);
        let peer = SocketAddr::from(([192, 0, 2, 1], 1));
        let (place, desk) = (self.registry.enter(&self.terms), self.desk.clone());
        let life = place.life.clone();
        tokio::task::spawn_local(async move {
            let life = place.life.clone();
            let stream = super::Stream::new(far, life.clone());
            http(stream, Version::Http1, peer, false, desk, life).await;
        });
        (near, life)
    }

    /// What has come since the last time, and how.
    fn came(&self) -> Vec<(Way, String)> {
        self.desk.came.take()
    }
}

/// Runs in virtual time, which passes only while nobody has anything to do.
fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    LocalSet::new().block_on(&runtime.unwrap(), test);
}

/// Until all that has been written has been read.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Reads one answer with a length: its head, in lower case, and its body.
async fn answer(stream: &mut DuplexStream) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let mut body = vec![0; length[..length.find('\r').unwrap()].parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
}

async fn ask(stream: &mut DuplexStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(stream).await.1
}
