//! HTTP/2 clients that reset their streams.

use super::{Backend, Gateway, PATIENCE, connect};
use std::io::Read;
use tollgate_faults::clock::wait_until;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET / http x` in HPACK's static table.
pub(super) const HEAD: &[u8] = b"\x82\x86\x84\x41\x01x";
/// The same with `POST`.
pub(super) const POST: &[u8] = b"\x83\x86\x84\x41\x01x";

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request whose stream is reset is charged all the same.
#[test]
fn requests_that_are_taken_back_are_charged() {
    let backend = Backend::usual();
    let file = "headers: [draft-6]\nlimits: [{name: a, rate: 1000000/h, algorithm: fixed-window}]";
    let gateway = Gateway::before(&backend, file);
    let mut attacker = connect(gateway.address());
    attacker.send(PREFACE);
    for number in 0..10 {
        let stream = number * 2 + 1;
        attacker.send(&frame(1, 5, stream, HEAD));
        attacker.send(&frame(3, 0, stream, &8_u32.to_be_bytes()));
        // The answer to the ping shows that all earlier frames were processed.
        attacker.send(&frame(6, 0, 0, &[number as u8; 8]));
        await_ping(&mut attacker.0, number as u8);
    }
    let left: u64 = gateway.get("/", "").field("ratelimit-remaining").unwrap().parse().unwrap();
    assert!((1_000_000 - 11..1_000_000).contains(&left), "{left}");
}

/// HTTP/2 drops a fragment first: the limits and the service see the same path.
#[test]
fn a_fragment_is_part_of_no_path() {
    let backend = Backend::usual();
    let file = "limits: [{name: a, match: {path: /a}, rate: 1/h}]";
    let gateway = Gateway::before(&backend, file);
    let mut client = connect(gateway.address());
    client.send(PREFACE);
    client.send(&frame(1, 5, 1, b"\x82\x86\x04\x04/a#b\x41\x01x"));
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    assert_eq!(backend.seen()[0].line(), "GET /a HTTP/1.1");
    assert_eq!(gateway.get("/a", "").status, 429);
}

/// Reads frames until the answer to this ping.
fn await_ping(stream: &mut impl Read, number: u8) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == 6 && payload == [number; 8] {
            return;
        }
    }
}
