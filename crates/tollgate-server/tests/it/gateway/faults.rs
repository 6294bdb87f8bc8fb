//! Upstreams that fail, and the requests that are retried.

use super::{Backend, Gateway, ok};
use std::{
    io::Write,
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
};

/// An address without a listener.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn file(upstream: &str) -> String {
    format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: {upstream}\n")
}

#[test]
fn servers_that_cannot_be_reached_or_understood_are_bad_gateways() {
    let gateway = Gateway::new(&file(&nowhere()));
    let answer = gateway.get("/", "");
    assert_eq!(
        (answer.status, answer.field("content-type")),
        (502, Some("application/problem+json"))
    );
    assert_eq!(answer.json()["status"], 502);

    let nonsense: [&[u8]; 4] = [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 20",
    ];
    for text in nonsense {
        let backend = Backend::new(move |_, stream| {
            stream.write_all(text).unwrap();
            false
        });
        let gateway = Gateway::before(&backend, "");
        assert_eq!(gateway.get("/", "").status, 502, "{text:?}");
    }
}

#[test]
fn servers_that_take_too_long_are_timeouts() {
    let backend = Backend::new(|_, _| {
        std::thread::park_timeout(super::PATIENCE);
        false
    });
    let upstream = format!("{{servers: {}, timeouts: {{response: 50ms}}}}", backend.url());
    let gateway = Gateway::new(&file(&upstream));
    assert_eq!(gateway.get("/", "").status, 504);
}

/// A response that is cut off does not look complete to the client.
#[test]
fn half_an_answer_is_not_a_whole_one() {
    let backend = Backend::new(|_, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
            .unwrap();
        false
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    let text = super::rest(&mut client);
    assert!(text.ends_with("3\r\nabc\r\n"), "{text}");
}

/// An upstream that closes each connection after one response, without announcing it.
fn one_answer_each() -> Backend {
    let asked = AtomicUsize::new(0);
    Backend::new(move |seen, stream| {
        // The upstream reads the second request on a connection, and then closes it.
        if asked.fetch_add(1, Ordering::SeqCst) > 0 && seen.connection == 0 {
            return false;
        }
        ok(stream, "fresh")
    })
}

#[test]
fn what_may_be_repeated_is_sent_again_when_an_old_connection_ends() {
    let backend = one_answer_each();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(backend.connections.load(Ordering::SeqCst), 2);
    assert_eq!(backend.seen().len(), 3);
}

#[test]
fn what_may_not_be_repeated_is_not() {
    let requests: [&[u8]; 2] = [
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
        b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\na",
    ];
    for request in requests {
        let backend = one_answer_each();
        let gateway = Gateway::before(&backend, "");
        let mut client = gateway.client();
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.answer().status, 200);
        client.send(request);
        assert_eq!(client.answer().status, 502);
        assert_eq!(backend.seen().len(), 2, "sent once");
    }
}

/// A new connection that closes is not a reason to retry.
#[test]
fn nothing_is_repeated_on_a_fresh_connection() {
    let backend = Backend::new(|_, _| false);
    let gateway = Gateway::before(&backend, "");
    assert_eq!(gateway.get("/", "").status, 502);
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let long = format!("x-long: {}\r\n", "x".repeat(20_000));
    let many = "x-many: x\r\n".repeat(200);
    for fields in [long, many] {
        let mut client = gateway.client();
        let text = format!("GET / HTTP/1.1\r\nhost: x\r\n{fields}\r\n");
        // The gateway may refuse the request before all of it is sent.
        client.0.write_all(text.as_bytes()).ok();
        assert_eq!(client.answer().status, 431);
        assert!(client.is_ended());
    }
    assert!(backend.seen().is_empty());
}
