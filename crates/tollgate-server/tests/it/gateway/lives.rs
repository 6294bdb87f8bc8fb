//! The charges that requests in flight hold: the scenarios of the tower layer, through the gateway.

use super::table::cases::lives::{Act, FIRST, LAST, LIVES, Life};
use super::{Backend, Gateway, PATIENCE, read_head};
use crate::{http::Client, nodes::Redis};
use std::{
    collections::HashMap,
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};
use tollgate_faults::clock::wait_until;

/// For each pending response: whether it completes or is aborted.
type Orders = Arc<Mutex<HashMap<String, Receiver<bool>>>>;

struct SlowGateway {
    gateway: Gateway,
    backend: Backend,
    orders: Orders,
    clients: HashMap<&'static str, (Client, Sender<bool>)>,
}

/// Answers immediately, or when the client's order arrives.
fn reply(orders: &Orders, line: &str, stream: &mut TcpStream) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let name = line.split(['/', ' ']).nth(2).unwrap_or_default();
    let Some(order) = orders.lock().unwrap().remove(name) else {
        return write!(stream, "{head}content-length: 2\r\n\r\n{{}}").is_ok();
    };
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    write!(stream, "{head}transfer-encoding: chunked\r\n\r\n{}", chunk(FIRST)).unwrap();
    let ends = order.recv_timeout(PATIENCE).unwrap_or(false);
    ends && write!(stream, "{}0\r\n\r\n", chunk(LAST)).is_ok()
}

impl SlowGateway {
    fn new(life: &Life, store: &str) -> Self {
        let orders: Orders = Arc::default();
        let heeded = orders.clone();
        let backend = Backend::new(move |seen, stream| reply(&heeded, seen.line(), stream));
        let gateway = Gateway::before(&backend, &format!("{store}\n{}", life.policy));
        Self { gateway, backend, orders, clients: HashMap::new() }
    }

    fn send(&mut self, name: &'static str) {
        let (sender, order) = channel();
        self.orders.lock().unwrap().insert(name.into(), order);
        let mut client = self.gateway.client();
        client.send(format!("GET /{name} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        self.clients.insert(name, (client, sender));
    }

    fn status(&self) -> u16 {
        self.gateway.get("/", "").status
    }

    /// The number of requests that the gateway has admitted.
    fn admitted(&self) -> u64 {
        let node = self.gateway.running().node();
        node.gate.counts().iter().map(|(_, counts)| counts.admitted).sum()
    }

    /// The remaining units of the last limit.
    fn left(&self) -> u64 {
        let node = self.gateway.running().node();
        let rules = node.gate.rules();
        let facts = rules.facts(Default::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut work = tollgate::engine::GateBuffers::default();
        let peek = node.gate.peek(&rules, node.clock.now_us(), &facts, 1, &mut work);
        runtime.block_on(peek).rows.last().unwrap().outcome.remaining
    }

    fn act(&mut self, act: Act, at: &str) {
        match act {
            Act::Begin(name) => {
                self.send(name);
                let stream = &mut self.clients.get_mut(name).unwrap().0.0;
                let head = read_head(stream).unwrap();
                assert!(head.starts_with("HTTP/1.1 200"), "{at}: {head}");
                stream.read_exact(&mut vec![0; FIRST.len() + 5]).unwrap();
            }
            Act::Wait(name) => {
                let before = self.admitted();
                self.send(name);
                // A client that disconnects while the store decides is charged.
                eventually(at, || self.admitted() > before);
            }
            Act::End(name) | Act::Break(name) => {
                let (mut client, order) = self.clients.remove(name).unwrap();
                let ends = matches!(act, Act::End(_));
                order.send(ends).unwrap();
                let mut last = vec![0; LAST.len() + 10];
                let all = client.0.read_exact(&mut last).is_ok();
                assert_eq!(all && last.ends_with(b"\r\n0\r\n\r\n"), ends, "{at}");
            }
            Act::Leave(name) => drop(self.clients.remove(name)),
            Act::Passes => assert_eq!(self.status(), 200, "{at}"),
            Act::Refused => assert_eq!(self.status(), 429, "{at}"),
            // The gateway notices the end of a response, or a client that disconnected, a moment
            // later.
            Act::Left(left) => eventually(at, || self.left() == left),
            Act::Reached(count) => assert_eq!(self.backend.seen().len(), count, "{at}"),
        }
    }
}

#[track_caller]
fn eventually(at: &str, holds: impl Fn() -> bool) {
    assert!(wait_until(PATIENCE, holds), "{at}: never");
}

fn live(store: impl Fn(usize) -> String) {
    for (number, life) in LIVES.iter().enumerate() {
        let mut world = SlowGateway::new(life, &store(number));
        for (index, act) in life.acts.iter().enumerate() {
            world.act(*act, &format!("{}, {index}: {act:?}", life.name));
        }
    }
}

#[test]
fn lives_go_as_told() {
    live(|_| String::new());
}

#[test]
fn lives_go_as_told_on_redis() {
    let redis = Redis::start();
    live(|number| {
        format!("store: {{redis: {{url: '{}', prefix: l{number}, deadline: 10s}}}}", redis.url())
    });
}
