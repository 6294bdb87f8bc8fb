//! Two nodes restarted in turn, under load.

use super::{Backend, Gateway};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// A client that behaves like a load balancer: if a node refuses a connection or closes it, it uses
/// the other node.
struct Shopper {
    nodes: [SocketAddr; 2],
    turn: usize,
    stream: Option<TcpStream>,
}

impl Shopper {
    /// Sends one request. Returns whether the answer was 200.
    fn ask(&mut self) -> bool {
        let mut stream = loop {
            match self.stream.take() {
                Some(stream) => break stream,
                None => {
                    self.turn += 1;
                    self.stream = TcpStream::connect(self.nodes[self.turn % 2]).ok();
                }
            }
        };
        stream.set_read_timeout(Some(super::PATIENCE)).unwrap();
        if stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").is_err() {
            return false;
        }
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return false,
            }
        }
        if stream.read_exact(&mut [0; 5]).is_err() {
            return false;
        }
        let head = String::from_utf8_lossy(&head);
        if !head.contains("connection: close") {
            self.stream = Some(stream);
        }
        head.starts_with("HTTP/1.1 200")
    }
}

#[test]
fn two_nodes_restarted_in_turn_lose_no_request() {
    let backend = Backend::usual();
    let file = |port: u16| {
        format!("listen: {{gateway: '127.0.0.1:{port}'}}\nupstream: {}\n", backend.url())
    };
    let mut nodes = [Gateway::new(&file(0)), Gateway::new(&file(0))].map(Some);
    let addresses = [0, 1].map(|node| nodes[node].as_ref().unwrap().address());
    let (stop, asked, lost) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let load: Vec<_> = (0..4)
        .map(|turn| {
            let (stop, asked, lost) = (stop.clone(), asked.clone(), lost.clone());
            thread::spawn(move || {
                let mut shopper = Shopper { nodes: addresses, turn, stream: None };
                while !stop.load(Ordering::SeqCst) {
                    asked.fetch_add(1, Ordering::SeqCst);
                    if !shopper.ask() {
                        lost.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    let more = |asked: &AtomicUsize| {
        let until = asked.load(Ordering::SeqCst) + 100;
        while asked.load(Ordering::SeqCst) < until {
            thread::yield_now();
        }
    };
    for node in [0, 1, 0] {
        more(&asked);
        nodes[node].take().unwrap().drain();
        more(&asked);
        nodes[node] = Some(Gateway::new(&file(addresses[node].port())));
    }
    more(&asked);
    stop.store(true, Ordering::SeqCst);
    load.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(lost.load(Ordering::SeqCst), 0, "of {}", asked.load(Ordering::SeqCst));
}
