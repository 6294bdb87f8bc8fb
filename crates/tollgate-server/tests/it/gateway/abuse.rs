//! Peers that mean no good, over HTTP/2: their connections end, and others are served meanwhile.

use super::{Backend, Gateway, connect};
use std::io::{Read, Write};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET / http x`, by HPACK's static table.
const HEAD: &[u8] = b"\x82\x86\x84\x41\x01x";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Sends pieces until the gateway has had enough; how many that were at most.
fn flood(gateway: &Gateway, most: u32, piece: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut attacker = connect(gateway.address());
    attacker.send(PREFACE);
    let mut reader = attacker.0.try_clone().unwrap();
    let closed = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    });
    for number in 0..most {
        if attacker.0.write_all(&piece(number)).is_err() || closed.is_finished() {
            return closed.join().unwrap().then_some(number);
        }
    }
    None
}

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn floods_end_and_others_are_served() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let mut other = gateway.client();
    let mut serve = || {
        other.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(other.answer().status, 200);
    };
    let before = resident();
    // Streams that are taken back as soon as they are opened.
    let rapid_reset = |number: u32| {
        let stream = number * 2 + 1;
        [frame(1, 5, stream, HEAD), frame(3, 0, stream, &8_u32.to_be_bytes())].concat()
    };
    assert!(flood(&gateway, 500_000, rapid_reset).is_some(), "rapid reset");
    serve();
    // A head that never ends.
    let endless = |number: u32| match number {
        0 => frame(1, 1, 1, HEAD),
        _ => {
            frame(9, 0, 1, &[b"\0\x01a\x7f\x81\x7c".as_slice(), &[b'x'; 15_000]].concat()[..15_000])
        }
    };
    assert!(flood(&gateway, 10_000, endless).is_some(), "CONTINUATION");
    serve();
    // Pieces of a body that have nothing in them.
    let post = b"\x83\x86\x84\x41\x01x";
    let empty = |number: u32| match number {
        0 => frame(1, 4, 1, post),
        _ => frame(0, 0, 1, b"").repeat(100),
    };
    assert!(flood(&gateway, 50_000, empty).is_some(), "empty DATA");
    serve();
    // Questions that have to be answered, from somebody who reads the answers.
    let pings = |_: u32| frame(6, 0, 0, b"12345678").repeat(100);
    flood(&gateway, 1000, pings);
    serve();
    let settings = |_: u32| frame(4, 0, 0, b"\0\x03\0\0\0\x64").repeat(100);
    flood(&gateway, 1000, settings);
    serve();
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "grew by {grown} bytes");
}

/// A request that is taken back has been asked for all the same.
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
        // Its echo shows that what came before has been looked at.
        attacker.send(&frame(6, 0, 0, &[number as u8; 8]));
        await_ping(&mut attacker.0, number as u8);
    }
    let left: u64 = gateway.get("/", "").field("ratelimit-remaining").unwrap().parse().unwrap();
    assert!((1_000_000 - 11..1_000_000).contains(&left), "{left}");
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
