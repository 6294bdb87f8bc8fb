//! HTTP/2 streams whose upstream, client or gateway ends early.

use super::super::{Backend, Gateway, PATIENCE, ok, signal, wait};
use super::{connect, get, request, run, whole};
use http_body_util::BodyExt;
use std::{
    io::{Read, Write},
    sync::atomic::{AtomicUsize, Ordering},
};
use tollgate_faults::clock::wait_until;

/// A request on a reused connection that closes without a byte is retried if it is idempotent, but
/// only once.
#[test]
fn what_an_idle_connection_swallows_is_sent_again_where_it_may_be() {
    for (method, status, times) in [("GET", 200, 2), ("DELETE", 200, 2), ("POST", 502, 1)] {
        let asked = AtomicUsize::new(0);
        let backend = Backend::new(move |seen, stream| {
            let number = asked.fetch_add(1, Ordering::SeqCst);
            let lost = seen.line().contains("/lost") || number > 0 && seen.connection == 0;
            !lost && ok(stream, "hello")
        });
        let gateway = Gateway::before(&backend, "");
        run(async {
            let mut client = connect(&gateway).await;
            assert_eq!(get(&mut client, "/1", &[]).await.0, 200);
            let second = client.send_request(request(method, "/2", &[])).await.unwrap();
            assert_eq!(second.status(), status, "{method}");
            assert_eq!(get(&mut client, "/lost", &[]).await.0, 502);
        });
        let seen = backend.seen();
        let count = |path: &str| seen.iter().filter(|seen| seen.line().contains(path)).count();
        assert_eq!((count(" /1 "), count(" /2 ")), (1, times), "{method}");
        assert!((1..=2).contains(&count(" /lost ")));
    }
}

#[test]
fn a_connection_that_the_server_has_closed_is_not_used() {
    let (closed, gone) = signal();
    let backend = Backend::new(move |seen, stream| {
        ok(stream, "hello");
        if seen.connection == 0 {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            closed.send(()).unwrap();
        }
        seen.connection > 0
    });
    let gateway = Gateway::before(&backend, "");
    run(async {
        let mut client = connect(&gateway).await;
        assert_eq!(get(&mut client, "/", &[]).await, (200, "hello".into()));
        wait(&gone);
        assert_eq!(get(&mut client, "/", &[]).await, (200, "hello".into()));
    });
    assert_eq!(backend.connections.load(Ordering::SeqCst), 2);
}

/// The gateway forwards the start of a response before the rest arrives.
#[test]
fn half_an_answer_is_passed_on() {
    let (go, gone) = signal();
    let backend = Backend::new(move |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nfirst").unwrap();
        wait(&gone);
        stream.write_all(b"second").is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    run(async {
        let mut client = connect(&gateway).await;
        let answer = client.send_request(request("GET", "/", &[])).await.unwrap();
        let mut body = answer.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "first");
        go.send(()).unwrap();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "second");
    });
}

/// An upstream without an answer and one with a malformed answer get different statuses. Neither
/// affects other streams.
#[test]
fn servers_that_fail_end_their_stream_only() {
    let backend = Backend::new(|seen, stream| match seen.line() {
        "GET /silent HTTP/1.1" => stream.read(&mut [0]).unwrap_or_default() > 0,
        "GET /nonsense HTTP/1.1" => stream.write_all(b"SSH-2.0\r\n").is_err(),
        "GET /broken HTTP/1.1" => stream.write_all(b"HTTP/1.1 20").is_err(),
        _ => ok(stream, "hello"),
    });
    let upstream = format!("{{servers: {}, timeouts: {{response: 50ms}}}}", backend.url());
    let gateway =
        Gateway::new(&format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: {upstream}\n"));
    run(async {
        let mut client = connect(&gateway).await;
        for (path, status) in
            [("/silent", 504), ("/nonsense", 502), ("/broken", 502), ("/fine", 200)]
        {
            assert_eq!(get(&mut client, path, &[]).await.0, status, "{path}");
        }
    });
}

/// A stream reset by its client ends the request to the upstream, and frees its slots.
#[test]
fn a_reset_takes_the_connection_to_the_server_with_it() {
    let (left, gone) = signal();
    let backend = Backend::new(move |seen, stream| {
        if seen.line().contains("/fine") {
            return ok(stream, "hello");
        }
        // The upstream does not answer until the gateway closes the connection.
        assert_eq!(stream.read(&mut [0]).unwrap_or_default(), 0);
        left.send(()).unwrap();
        false
    });
    let limit = "limits: [{name: a, algorithm: concurrency, rate: 1, ttl: 1h}]";
    let gateway = Gateway::before(&backend, limit);
    run(async {
        let mut client = connect(&gateway).await;
        let asking = client.send_request(request("GET", "/slow", &[]));
        let asking = tokio::spawn(asking);
        while backend.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(get(&mut client, "/fine", &[]).await.0, 429);
        asking.abort();
        while get(&mut client, "/fine", &[]).await.0 != 200 {}
    });
    wait(&gone);
}

/// A request in flight during a drain is answered, and its connection accepts no more requests.
#[test]
fn a_drain_finishes_what_is_under_way() {
    let (go, gone) = signal();
    let backend = Backend::new(move |_, stream| {
        wait(&gone);
        ok(stream, "hello")
    });
    let gateway = Gateway::before(&backend, "");
    run(async {
        let mut client = connect(&gateway).await;
        let asking = tokio::spawn(client.send_request(request("GET", "/", &[])));
        while backend.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        let address = gateway.address();
        let draining = std::thread::spawn(move || gateway.drain());
        while tokio::net::TcpStream::connect(address).await.is_ok() {}
        go.send(()).unwrap();
        assert_eq!(whole(asking.await.unwrap().unwrap()).await, (200, "hello".into()));
        assert!(client.send_request(request("GET", "/", &[])).await.is_err());
        assert!(wait_until(PATIENCE, || draining.is_finished()));
    });
}
