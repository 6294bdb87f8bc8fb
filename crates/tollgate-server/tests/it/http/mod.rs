//! The check API over real sockets.

mod concurrency;
mod http2;
mod problems;
mod reservations;
mod same;
mod shapes;
mod shed;
mod verdicts;

use serde_json::Value;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    num::NonZero,
    sync::Arc,
    time::Duration,
};
use tollgate::engine::GateSetup;
use tollgate_net::{FrontendServer, Limits, Listener};
use tollgate_observe::metrics::Front;
use tollgate_server::{Node, front::http::CheckApi};

/// The longest time that a request may wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node that serves the check API.
pub(crate) struct Served {
    pub(crate) node: Arc<Node>,
    pub(crate) server: FrontendServer,
    pub(crate) address: SocketAddr,
}

pub(crate) fn serve(file: &str) -> Served {
    serve_with(file, Limits::default())
}

pub(crate) fn serve_with(file: &str, limits: Limits) -> Served {
    let compiled = tollgate_policy::compile(file.as_bytes()).expect("a valid file");
    let setup = GateSetup::of(&compiled);
    let node = Arc::new(Node::new(compiled, setup).expect("a valid policy"));
    let listener = Listener::bind(Front::Http, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address();
    let api = {
        let (node, limits) = (node.clone(), limits.clone());
        move || CheckApi::new(node.clone(), &limits)
    };
    let server = FrontendServer::builder()
        .workers(NonZero::new(2).unwrap())
        .front(listener, limits, api)
        .start()
        .unwrap();
    for (front, stats) in server.stats() {
        node.metrics.register_stats(*front, stats.clone());
    }
    Served { node, server, address }
}

/// A client's side of a connection.
pub(crate) struct Client(pub(crate) TcpStream);

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Served {
    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(stream)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.client().post(path, body)
    }
}

impl Client {
    pub(crate) fn post(&mut self, path: &str, body: &str) -> Answer {
        self.send(post(path, body).as_bytes());
        self.answer()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads one answer.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.field("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        answer.body = String::from_utf8(body).unwrap();
        answer
    }

    /// Reads the head of one answer.
    pub(crate) fn head(&mut self) -> Answer {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            self.0.read_exact(&mut byte).expect("an answer");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let fields: Vec<_> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Answer { status, fields, body: String::new() }
    }

    /// Whether the server closes the connection without another answer.
    pub(crate) fn is_ended(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}

pub(crate) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| &*field.1)
    }
}
