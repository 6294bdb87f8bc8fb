//! Small requests, complete in one read.

use super::{
    Backend, Gateway, LONG, PATIENCE, answers::whole, ok, read_head, signal, sorted, wait,
};
use std::{
    collections::BTreeSet,
    io::{Read, Write},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tollgate_faults::clock::wait_until;

/// Request heads, without their last line.
const HEADS: [&str; 9] = [
    "GET / HTTP/1.1\r\nhost: x\r\n",
    "GET /a/b/../c%3F?d=e%20f&g HTTP/1.1\r\nHost: Example.com:8080\r\nX-User: u\r\naccept: */*\r\n",
    "DELETE /1 HTTP/1.1\r\nhost: [::1]:1\r\nconnection: Keep-Alive\r\n",
    "OPTIONS /1 HTTP/1.1\r\nhost: x\r\nempty:\r\norigin: y\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 1.2.3.4\r\nX-Forwarded-Host: y\r\nx-forwarded-port: 1\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 1.2.3.4, 5.6.7.8\r\nx-forwarded-for: ::1\r\nx-forwarded-proto: a\r\nx-forwarded-proto: b\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nforwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nx-forwarded-proto: gopher\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\ncookie: a=b\r\nCookie: c=d\r\nvia: 1.0 other\r\nauthorization: Bearer t\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nX_Forwarded_For: 1.2.3.4\r\nx.real.ip: 1.2.3.4\r\nother_one: 1\r\n",
];

#[test]
fn servers_see_the_same() {
    let trusted = "trusted_proxies: [127.0.0.1]\nclient_address: {header: x-forwarded-for}";
    for (host, more) in [("preserve", ""), ("upstream", ""), ("preserve", trusted)] {
        let backend = Backend::usual();
        let upstream = format!("{{servers: {}, host: {host}}}", backend.url());
        let gateway = Gateway::new(&format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {upstream}\n{more}\n"
        ));
        for head in HEADS {
            for more in ["", LONG] {
                let mut client = gateway.client();
                client.send(format!("{head}{more}\r\n").as_bytes());
                assert_eq!(client.answer().status, 200, "{head}");
            }
            let seen = backend.seen();
            let [short, long] = [1, 0].map(|back| sorted(&seen[seen.len() - 1 - back].head));
            assert_eq!(short, long, "{head}");
        }
    }
}

#[test]
fn refusals_are_the_same_and_the_connection_goes_on() {
    let backend = Backend::usual();
    let policy = "headers: [draft-11]\nlimits: [{name: never, match: {path: /never}, rate: 0/h}]";
    let gateway = Gateway::before(&backend, policy);
    let grpc = "content-type: application/grpc\r\n";
    for (method, accept) in [
        ("GET", ""),
        ("GET", "accept: application/json\r\n"),
        ("GET", grpc),
        ("HEAD", ""),
        ("HEAD", grpc),
        ("POST", "content-length: 3\r\n"),
    ] {
        let body = if method == "POST" { "abc" } else { "" };
        let [short, long] = ["", LONG].map(|more| {
            let mut client = gateway.client();
            let head = format!("{method} /never HTTP/1.1\r\nhost: x\r\n{accept}{more}\r\n");
            client.send(format!("{head}{body}").as_bytes());
            let refused = whole(&mut client, method);
            client.send(format!("GET / HTTP/1.1\r\nhost: x\r\n{more}\r\n").as_bytes());
            assert_eq!(whole(&mut client, "GET").1, "hello");
            refused
        });
        assert_eq!(short, long, "{method} {accept}");
    }
    assert_eq!(backend.seen().len(), 12);
}

/// Pipelined requests are answered in order, with and without a body.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let backend = Backend::new(|seen, stream| ok(stream, seen.line()));
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    let get = |n: usize| format!("GET /{n} HTTP/1.1\r\nhost: x\r\n\r\n");
    let post = "POST /2 HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc";
    client.send([&get(0), &get(1), post, &get(3)].map(String::from).concat().as_bytes());
    let lines: Vec<String> = (0..4).map(|_| client.answer().body).collect();
    let expected = ["GET /0", "GET /1", "POST /2", "GET /3"].map(|line| format!("{line} HTTP/1.1"));
    assert_eq!(lines, expected);
}

/// Bytes that arrive while a request is in flight are the next request, not a disconnect.
#[test]
fn requests_that_come_early_wait() {
    let (go, gone) = signal();
    let backend = Backend::new(move |seen, stream| {
        if seen.line().contains("/slow") {
            wait(&gone);
        }
        ok(stream, seen.line())
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    client.send(b"GET /next HTTP/1.1\r\nhost: x\r\n\r\n");
    go.send(()).unwrap();
    assert_eq!(client.answer().body, "GET /slow HTTP/1.1");
    assert_eq!(client.answer().body, "GET /next HTTP/1.1");
}

#[test]
fn a_client_that_leaves_takes_its_connection_to_the_server_with_it() {
    let (left, gone) = signal();
    let backend = Backend::new(move |_, stream| {
        // The upstream does not answer until the gateway closes the connection.
        assert_eq!(stream.read(&mut [0]).unwrap_or_default(), 0);
        left.send(()).unwrap();
        false
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    drop(client);
    wait(&gone);
}

/// The gateway closes an idle connection that the upstream has closed, and does not reuse it.
#[test]
fn a_connection_that_the_server_has_closed_is_not_used() {
    let (closed, gone) = signal();
    let backend = Backend::new(move |seen, stream| {
        ok(stream, "hello");
        if seen.connection == 0 {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            // The gateway closes its side too, and sends no request.
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            closed.send(()).unwrap();
        }
        seen.connection > 0
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.answer().body, "hello");
    wait(&gone);
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.answer().body, "hello");
    assert_eq!(backend.connections.load(Ordering::SeqCst), 2);
}

/// A request on a reused connection that closes without a byte is retried, but only once.
#[test]
fn what_an_idle_connection_swallows_is_sent_again() {
    let asked = AtomicUsize::new(0);
    let backend = Backend::new(move |seen, stream| {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let lost = seen.line().contains("/lost") || number > 0 && seen.connection == 0;
        !lost && ok(stream, "hello")
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    client.send(b"GET /2 HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    client.send(b"GET /lost HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(client.answer().status, 502);
    let lines: Vec<_> = backend.seen().iter().map(|seen| seen.line().to_owned()).collect();
    let count = |path: &str| lines.iter().filter(|line| line.contains(path)).count();
    assert_eq!((count("GET /1"), count("GET /2")), (1, 2), "{lines:?}");
    assert!((1..=2).contains(&count("/lost")), "{lines:?}");
}

/// All idle connections close together, as in a restart of the upstream: the retry uses a new one.
#[test]
fn what_an_idle_connection_swallows_is_sent_by_a_new_one() {
    for way in ["", "te: trailers\r\n"] {
        // Enough clients for every thread of the gateway to have some.
        const CLIENTS: usize = 12;
        let both = Arc::new(Barrier::new(CLIENTS + 1));
        let (meet, first) = (both.clone(), Mutex::new(BTreeSet::new()));
        let backend = Backend::new(move |seen, stream| {
            if seen.line().contains("/warm") {
                meet.wait();
            }
            first.lock().unwrap().insert(seen.connection) && ok(stream, "hello")
        });
        let gateway = Gateway::before(&backend, "");
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| gateway.client()).collect();
        let ask = |path: &str| format!("GET /{path} HTTP/1.1\r\nhost: x\r\n{way}\r\n");
        clients.iter_mut().for_each(|client| client.send(ask("warm").as_bytes()));
        both.wait();
        clients.iter_mut().for_each(|client| assert_eq!(client.answer().status, 200, "{way}"));
        clients[0].send(ask("again").as_bytes());
        assert_eq!(clients[0].answer().status, 200, "{way}");
    }
}

/// Requests with and without a body share one upstream connection.
#[test]
fn the_long_way_uses_connections_of_the_short_one() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    client.answer();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\na");
    client.answer();
    let connections: Vec<_> = backend.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0]);
}

/// A connection is reused after a streamed response.
#[test]
fn unusual_answers_cost_no_connections() {
    let backend = Backend::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok").is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    // All on one worker.
    let mut client = gateway.client();
    for _ in 0..20 {
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.answer().body, "ok");
    }
    // The next request may arrive before the connection is back in the pool.
    assert!(backend.connections.load(Ordering::SeqCst) <= 3);
}

/// The gateway forwards the start of a response before the rest arrives.
#[test]
fn half_an_answer_is_passed_on() {
    for cut in [0, 5] {
        let (go, gone) = signal();
        let backend = Backend::new(move |_, stream| {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n";
            let (first, second) = b"firstsecond".split_at(cut);
            stream.write_all(&[head, first].concat()).unwrap();
            wait(&gone);
            stream.write_all(second).is_ok()
        });
        let gateway = Gateway::before(&backend, "");
        let mut client = gateway.client();
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        read_head(&mut client.0).unwrap();
        let mut body = [0; 11];
        client.0.read_exact(&mut body[..cut]).unwrap();
        go.send(()).unwrap();
        client.0.read_exact(&mut body[cut..]).unwrap();
        assert_eq!(&body, b"firstsecond");
    }
}

/// An upstream writes head and body separately.
#[test]
fn a_head_and_a_body_that_come_apart_are_one_answer() {
    let backend = Backend::new(move |seen, stream| {
        stream.set_nodelay(true).unwrap();
        let body = seen.line().to_owned();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        std::thread::yield_now();
        stream.write_all(body.as_bytes()).is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    for n in 0..200 {
        client.send(format!("GET /{n} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        assert_eq!(client.answer().body, format!("GET /{n} HTTP/1.1"));
    }
}
