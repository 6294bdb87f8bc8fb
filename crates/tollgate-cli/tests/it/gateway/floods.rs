//! Hostile HTTP/2 clients: their connections are closed, memory does not grow, and other clients
//! are served meanwhile.

use super::{GatewayFixture, connect};
use std::io::{ErrorKind, Read, Write};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET / http x` in HPACK's static table.
const HEAD: &[u8] = b"\x82\x86\x84\x41\x01x";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Sends pieces while other clients send requests. Returns whether the gateway closed the
/// connection.
fn flood(world: &mut GatewayFixture, at: &str, most: u32, piece: impl Fn(u32) -> Vec<u8>) -> bool {
    let mut attacker = connect(world.address);
    attacker.write_all(PREFACE).unwrap();
    let mut reader = attacker.try_clone().unwrap();
    let closed = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            }
        }
    });
    for number in 0..most {
        if attacker.write_all(&piece(number)).is_err() || closed.is_finished() {
            world.holds(at);
            return closed.join().unwrap();
        }
        if number % 100 == 0 {
            world.holds(at);
        }
    }
    world.holds(at);
    false
}

#[test]
fn floods_end_and_others_are_served() {
    let mut world = GatewayFixture::new("floods");
    // Streams that are reset as soon as they are opened.
    let rapid_reset = |number: u32| {
        let stream = number * 2 + 1;
        [frame(1, 5, stream, HEAD), frame(3, 0, stream, &8_u32.to_be_bytes())].concat()
    };
    assert!(flood(&mut world, "rapid reset", 500_000, rapid_reset));
    // A head that never ends.
    let endless = |number: u32| match number {
        0 => frame(1, 1, 1, HEAD),
        _ => {
            frame(9, 0, 1, &[b"\0\x01a\x7f\x81\x7c".as_slice(), &[b'x'; 15_000]].concat()[..15_000])
        }
    };
    assert!(flood(&mut world, "CONTINUATION", 10_000, endless));
    // Empty DATA frames.
    let post = b"\x83\x86\x84\x41\x01x";
    let empty = |number: u32| match number {
        0 => frame(1, 4, 1, post),
        _ => frame(0, 0, 1, b"").repeat(100),
    };
    assert!(flood(&mut world, "empty DATA", 50_000, empty));
    // Frames that need an answer, from a client that reads the answers.
    let pings = |_: u32| frame(6, 0, 0, b"12345678").repeat(100);
    flood(&mut world, "PING", 1000, pings);
    let settings = |_: u32| frame(4, 0, 0, b"\0\x03\0\0\0\x64").repeat(100);
    flood(&mut world, "SETTINGS", 1000, settings);
}
