//! Connections that leave HTTP.

use super::{Backend, Gateway};
use std::io::{Read, Write};

const UPGRADE: &[u8] =
    b"GET /ws HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\r\n";

/// Accepts an upgrade, greets, and says everything back.
fn echo() -> Backend {
    Backend::new(|_, stream| {
        let text = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhi";
        stream.write_all(text).unwrap();
        let mut buffer = [0; 64];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return false,
                Ok(len) => stream.write_all(&buffer[..len]).unwrap(),
            }
        }
    })
}

#[test]
fn both_sides_speak_freely_after_an_upgrade() {
    let backend = echo();
    let limit = "limits: [{name: a, algorithm: concurrency, rate: 1}]";
    let gateway = Gateway::before(&backend, limit);
    let mut client = gateway.client();
    client.send(UPGRADE);
    let head = super::read_head(&mut client.0).unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    let seen = backend.seen();
    assert_eq!(
        (seen[0].all("upgrade"), seen[0].all("connection")),
        (vec!["websocket"], vec!["upgrade"])
    );
    let mut got = [0; 2];
    client.0.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hi");
    // Not HTTP in the least.
    for piece in [&b"\x81\n\0x"[..], b"GET / HTTP/9\n\n"] {
        client.send(piece);
        let mut got = vec![0; piece.len()];
        client.0.read_exact(&mut got).unwrap();
        assert_eq!(got, piece);
    }
    // The slot is held for as long as they speak.
    assert_eq!(gateway.get("/", "").status, 429);
    drop(client);
    while gateway.get("/", "").status == 429 {}
}

/// What comes before the server has agreed is not lost when it does.
#[test]
fn early_bytes_wait_for_the_upgrade() {
    let backend = echo();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(&[UPGRADE, b"\x00early\n"].concat());
    super::read_head(&mut client.0).unwrap();
    let mut got = [0; 9];
    client.0.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hi\x00early\n");
}

/// Nobody gets another protocol who did not ask for one.
#[test]
fn an_upgrade_that_nobody_asked_for_is_no_answer() {
    let backend = echo();
    let gateway = Gateway::before(&backend, "");
    assert_eq!(gateway.get("/", "").status, 502);
}
