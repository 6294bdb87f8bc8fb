//! Slow clients: each is closed at its deadline, uses little memory until then, and delays no other
//! client.

use super::{GatewayFixture, connect};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};
use tollgate_faults::clock::wait_until;

/// The number of concurrent clients of each kind.
const ATTACKERS: usize = 200;

/// Runs many clients of one kind, until the last one has been closed. Each sends `first`, and then
/// `more` again and again. Returns the bytes that each received.
#[track_caller]
fn attack(world: &mut GatewayFixture, at: &str, first: &[u8], more: &[u8]) -> Vec<String> {
    let mut open: Vec<(TcpStream, Vec<u8>)> =
        (0..ATTACKERS).map(|_| (connect(world.address), Vec::new())).collect();
    for (stream, _) in &mut open {
        // The gateway may refuse the request before all of it is sent.
        stream.write_all(first).ok();
        stream.set_nonblocking(true).unwrap();
    }
    let mut told = Vec::new();
    let served = world.good.served;
    let all = wait_until(super::PATIENCE, || {
        world.holds(at);
        open.retain_mut(|(stream, heard)| {
            if !more.is_empty() {
                stream.write_all(more).ok();
            }
            let is_open = listen(stream, heard);
            if !is_open {
                told.push(String::from_utf8_lossy(heard).into_owned());
            }
            is_open
        });
        open.is_empty()
    });
    assert!(all, "{at}: {} are still there", open.len());
    assert!(world.good.served > served, "{at}: no other client was served");
    told
}

/// Reads all available bytes. Returns whether the connection is open.
fn listen(stream: &mut TcpStream, heard: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(read) => heard.extend_from_slice(&buffer[..read]),
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[track_caller]
fn all_told(told: &[String], status: &str) {
    assert!(told.iter().all(|text| text.starts_with(status)), "{:?}", told.first());
}

#[test]
fn slow_clients_are_closed_at_their_deadline() {
    let mut world = GatewayFixture::new("slow");
    let told = attack(&mut world, "silent", b"", b"");
    assert!(told.iter().all(String::is_empty), "{told:?}");
    // A head that keeps growing has the same deadline as any other.
    let told = attack(&mut world, "slow head", b"GET / HTTP/1.1\r\nx-slow: ", b"x");
    assert!(told.iter().any(|text| text.starts_with("HTTP/1.1 408")), "{told:?}");
    let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\npart";
    let told = attack(&mut world, "slow body", head, b"");
    all_told(&told, "HTTP/1.1 408");
    let chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\npa";
    let told = attack(&mut world, "slow chunk", chunked, b"");
    all_told(&told, "HTTP/1.1 408");
    // Clients that have an answer, and send nothing more.
    let told = attack(&mut world, "idle", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"");
    all_told(&told, "HTTP/1.1 200");
}

#[test]
fn heads_without_an_end_are_refused() {
    let mut world = GatewayFixture::new("heads");
    let long = [b"GET / HTTP/1.1\r\nhost: x\r\nx-long: ".as_slice(), &[b'x'; 20_000]].concat();
    let told = attack(&mut world, "one long field", &long, b"");
    assert!(told.iter().any(|text| text.starts_with("HTTP/1.1 431")), "{told:?}");
    let many =
        [b"GET / HTTP/1.1\r\nhost: x\r\n".as_slice(), &b"x: y\r\n".repeat(200), b"\r\n"].concat();
    let told = attack(&mut world, "many fields", &many, b"");
    assert!(told.iter().any(|text| text.starts_with("HTTP/1.1 431")), "{told:?}");
    let line = [b"GET /".as_slice(), &[b'x'; 70_000]].concat();
    let told = attack(&mut world, "one long line", &line, b"");
    assert!(told.iter().all(|text| !text.starts_with("HTTP/1.1 200")), "{told:?}");
}

/// Clients that request a large response and read none of it. Over HTTP/1 the system's buffers fill
/// up; over HTTP/2 the window allows no data.
#[test]
fn clients_that_take_nothing_are_closed() {
    let mut world = GatewayFixture::new("stuck");
    let one = b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n".to_vec();
    // A window of zero for streams, and `GET /large http x` in HPACK's static table.
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
    let head = b"\0\0\x0d\x01\x05\0\0\0\x01\x82\x86\x04\x06/large\x41\x01x";
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let two = [preface, settings, head].concat();
    // `GET / http x`: a response with a single, last DATA frame.
    let small = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01x";
    let two_small = [preface, settings, small].concat();
    for (at, request) in [("HTTP/1", one), ("HTTP/2", two), ("HTTP/2, a little", two_small)] {
        let stuck: Vec<TcpStream> = (0..ATTACKERS)
            .map(|_| {
                let mut stream = connect(world.address);
                stream.write_all(&request).unwrap();
                stream
            })
            .collect();
        // Waits until all clients are connected.
        assert!(
            wait_until(super::PATIENCE, || world.open() >= ATTACKERS as u64),
            "{at}: some never came"
        );
        let gone = wait_until(super::PATIENCE, || {
            world.holds(at);
            world.open() <= 1
        });
        assert!(gone, "{at}: {} are still there", world.open());
        drop(stuck);
    }
}
