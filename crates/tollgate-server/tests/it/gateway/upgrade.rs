//! Upgraded connections.

use super::{Backend, Gateway, ok};
use crate::http::Client;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

const UPGRADE: &[u8] =
    b"GET /ws HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\r\n";

/// Accepts an upgrade, sends a greeting, and echoes all bytes.
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
    // The slot is held while the connection is open.
    assert_eq!(gateway.get("/", "").status, 429);
    drop(client);
    while gateway.get("/", "").status == 429 {}
}

/// Bytes that arrive before the upstream accepts the upgrade are not lost.
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

/// Over another version of HTTP, or inside TLS, requests would pass without a decision.
#[test]
fn no_upgrade_leads_to_more_requests() {
    let backend = Backend::new(|seen, stream| match seen.all("upgrade").is_empty() {
        true => ok(stream, "plain"),
        false => {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            false
        }
    });
    let gateway = Gateway::before(&backend, "");
    for asked in ["h2c", "H2C", "HTTP/2.0", "TLS/1.0, HTTP/1.1", "h2"] {
        let fields = format!(
            "connection: upgrade, http2-settings\r\nupgrade: {asked}\r\nhttp2-settings: AAMAAABk\r\n"
        );
        let answer = gateway.get("/", &fields);
        assert_eq!((answer.status, answer.body.as_str()), (200, "plain"), "{asked}");
    }
    let fields = "connection: upgrade\r\nupgrade: h2c, websocket\r\n";
    assert_eq!(gateway.get("/", fields).status, 502);
    let seen = backend.seen();
    assert_eq!(seen.last().unwrap().all("upgrade"), ["websocket"]);
    assert!(seen.iter().all(|seen| seen.all("http2-settings").is_empty()));
}

/// An upstream cannot upgrade a client that did not ask for it.
#[test]
fn an_upgrade_that_nobody_asked_for_is_no_answer() {
    let backend = echo();
    let gateway = Gateway::before(&backend, "");
    assert_eq!(gateway.get("/", "").status, 502);
}

/// Accepts an upgrade of `/ws` and then echoes all bytes; answers any other request with its first
/// line.
fn either() -> Backend {
    let echo = |stream: &mut TcpStream| {
        let text = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(text).unwrap();
        let mut buffer = [0; 64];
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..len]).unwrap();
        }
        false
    };
    Backend::new(move |seen, stream| match seen.line().contains("/ws") {
        true => echo(stream),
        false => ok(stream, seen.line()),
    })
}

fn is_echoed(client: &mut Client, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    client.0.read_exact(&mut got).unwrap();
    assert_eq!(got, bytes);
}

/// Requests, a refused upgrade and an accepted one, all on one connection.
#[test]
fn plain_requests_come_before_an_upgrade() {
    let backend = either();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    let refused = "connection: upgrade\r\nupgrade: websocket\r\n";
    for fields in ["", "", "keep-alive: 5\r\n", "", refused, ""] {
        client.send(format!("GET /plain HTTP/1.1\r\nhost: x\r\n{fields}\r\n").as_bytes());
        assert_eq!(client.answer().body, "GET /plain HTTP/1.1", "{fields}");
    }
    client.send(UPGRADE);
    assert_eq!(client.head().status, 101);
    client.send(b"\0\n\xff");
    is_echoed(&mut client, b"\0\n\xff");
    assert_eq!(backend.seen().len(), 7);
}

/// Pipelined bytes are requests, in order, up to the upgrade. Bytes after it belong to the other
/// protocol, even if they look like a request.
#[test]
fn what_follows_an_upgrade_is_no_request() {
    const GET: &[u8] = b"GET /plain HTTP/1.1\r\nhost: x\r\n\r\n";
    for size in [1000, 40, 1] {
        let backend = either();
        let gateway = Gateway::before(&backend, "");
        let mut client = gateway.client();
        client.0.set_nodelay(true).unwrap();
        for piece in [GET, GET, UPGRADE, GET, b"\0\n"].concat().chunks(size) {
            client.send(piece);
        }
        for _ in 0..2 {
            assert_eq!(client.answer().body, "GET /plain HTTP/1.1");
        }
        assert_eq!(client.head().status, 101);
        is_echoed(&mut client, &[GET, b"\0\n"].concat());
        assert_eq!(backend.seen().len(), 3, "by {size}");
    }
}

/// After a refused upgrade, the next bytes are HTTP requests.
#[test]
fn what_follows_a_refused_upgrade_is_a_request() {
    let (limit, agreed) = ("limits: [{name: a, match: {path: /ws}, rate: 0/s}]", "GET /ws");
    for (more, path, status) in [(limit, agreed, 429), ("", "GET /no", 200)] {
        let backend = either();
        let gateway = Gateway::before(&backend, more);
        let mut client = gateway.client();
        let upgrade = String::from_utf8(UPGRADE.to_vec()).unwrap().replace(agreed, path);
        client.send(format!("{upgrade}GET /2 HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        assert_eq!(client.answer().status, status);
        assert_eq!(client.answer().body, "GET /2 HTTP/1.1");
        client.send(b"\0\n\r\n\r\n");
        assert_eq!(client.answer().status, 400, "it is HTTP still");
    }
}
