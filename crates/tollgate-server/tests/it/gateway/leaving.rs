//! Clients that disconnect before their response: each request is still counted once.

use super::{Backend, Gateway, PATIENCE, abuse, get};
use crate::http::Client;
use crate::nodes::Redis;
use socket2::SockRef;
use std::time::Duration;
use std::{io::Read, sync::atomic::Ordering::SeqCst};
use tollgate_faults::clock::wait_until;
use tollgate_faults::proxy::{Faults, Proxy};
use tollgate_observe::metrics::Front;

/// An upstream that never answers.
fn silent() -> Backend {
    Backend::new(|_, stream| {
        // Reads until the gateway closes the connection.
        stream.read(&mut [0]).is_err()
    })
}

fn gateway(backend: &Backend) -> Gateway {
    let url = backend.url();
    Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}}\nupstream: {url}\n\
         limits: [{{name: a, rate: 1000/h}}]\n"
    ))
}

/// The outcomes of the gateway's requests, without zeros.
fn outcomes(gateway: &Gateway) -> Vec<(String, u64)> {
    let page = get(gateway.running().address(Front::Admin).unwrap(), "/metrics", "").body;
    let lines = page.lines().filter_map(|line| {
        let rest = line.strip_prefix("tollgate_requests_total{front=\"gateway\",outcome=\"")?;
        let (outcome, count) = rest.split_once("\"} ")?;
        Some((outcome.to_owned(), count.parse().ok()?))
    });
    lines.filter(|(_, count)| *count > 0).collect()
}

#[track_caller]
fn is_counted_once(gateway: &Gateway, outcome: &str, what: &str) {
    assert!(wait_until(PATIENCE, || !outcomes(gateway).is_empty()), "{what}");
    assert_eq!(outcomes(gateway), [(outcome.to_owned(), 1)], "{what}");
}

#[test]
fn whoever_leaves_before_the_answer_is_counted() {
    for request in [
        "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nkeep-alive: 5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let backend = silent();
        let gateway = gateway(&backend);
        let mut client = gateway.client();
        client.send(request.as_bytes());
        assert!(wait_until(PATIENCE, || backend.seen().len() == 1), "{request}");
        assert_eq!(outcomes(&gateway), []);
        drop(client);
        is_counted_once(&gateway, "abandoned", request);
    }
}

#[test]
fn whoever_leaves_in_the_middle_of_a_body_is_counted() {
    for (rest, later, outcome) in [
        ("content-length: 30\r\n\r\nabc", "", "abandoned"),
        ("transfer-encoding: chunked\r\n\r\n5\r\nabc", "", "abandoned"),
        ("transfer-encoding: chunked\r\n\r\n5\r\n", "", "abandoned"),
        // This client is still connected, and gets an answer.
        ("transfer-encoding: chunked\r\n\r\n", "nonsense\r\n", "invalid"),
    ] {
        let backend = silent();
        let gateway = gateway(&backend);
        let mut client = gateway.client();
        client.send(format!("POST / HTTP/1.1\r\nhost: x\r\n{rest}").as_bytes());
        assert!(wait_until(PATIENCE, || backend.connections.load(SeqCst) == 1), "{rest}");
        if outcome == "abandoned" {
            drop(client);
        } else {
            client.send(later.as_bytes());
        }
        is_counted_once(&gateway, outcome, rest);
    }
}

/// HTTP/2 clients reset a stream, or close the whole connection.
#[test]
fn streams_that_are_taken_back_are_counted() {
    let whole: &[&[u8]] = &[&abuse::frame(1, 5, 1, abuse::HEAD)];
    let part: &[&[u8]] = &[&abuse::frame(1, 4, 1, abuse::POST), &abuse::frame(0, 0, 1, b"abc")];
    for (sent, takes_back) in [(whole, true), (whole, false), (part, true), (part, false)] {
        let backend = silent();
        let gateway = gateway(&backend);
        let mut client = gateway.client();
        client.send(abuse::PREFACE);
        client.send(&sent.concat());
        assert!(wait_until(PATIENCE, || backend.connections.load(SeqCst) == 1));
        if takes_back {
            client.send(&abuse::frame(3, 0, 1, &8_u32.to_be_bytes()));
        } else {
            drop(client);
        }
        is_counted_once(&gateway, "abandoned", &format!("{sent:?} {takes_back}"));
    }
}

/// What a client sends, and how it leaves.
type Way<'a> = (&'a [u8], fn(Client));

/// Closes a connection with a reset.
fn reset(client: Client) {
    SockRef::from(&client.0).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Sends a request, waits until Redis has decided it, and leaves before the reply is here.
fn leaves_during_the_decision(redis: &Redis, gateway: &Gateway, sent: &[u8], leave: fn(Client)) {
    let (mut client, before) = (gateway.client(), redis.scripts_run());
    client.send(sent);
    assert!(wait_until(PATIENCE, || redis.scripts_run() > before));
    leave(client);
}

/// Waits for the give-back of a request that was served: it comes after the response.
fn until_quiet(redis: &Redis) {
    assert!(wait_until(PATIENCE, || {
        let before = redis.scripts_run();
        std::thread::sleep(Duration::from_millis(100));
        redis.scripts_run() == before
    }));
}

/// The slot is free at once: nobody will end the request, and the `ttl` is longer than the test.
#[test]
fn clients_that_leave_during_the_decision_take_no_slot() {
    let http1 = b"GET /left HTTP/1.1\r\nhost: x\r\n\r\n";
    let head = b"\x82\x86\x04\x05/left\x41\x01x";
    let http2 = [abuse::PREFACE, &abuse::frame(1, 5, 1, head)].concat();
    let take_back = |mut client: Client| {
        client.send(&abuse::frame(3, 0, 1, &8_u32.to_be_bytes()));
        // The connection is still open when the stream is reset.
        std::thread::sleep(Duration::from_millis(50));
    };
    let ways: [Way<'_>; 4] = [(http1, reset), (http1, drop), (&http2, reset), (&http2, take_back)];
    for slots in [
        "shed: {fleet: {capacity: 1, ttl: 1h}}",
        "limits: [{name: a, algorithm: concurrency, rate: 1, ttl: 1h}]",
    ] {
        let (redis, backend) = (Redis::listen(&[]), Backend::usual());
        let proxy = Proxy::start(redis.port()).unwrap();
        let gateway = Gateway::new(&format!(
            "listen: {{gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}}\nupstream: {}\n\
             store: {{redis: {{url: 'redis://127.0.0.1:{}', deadline: 20s}}}}\n{slots}\n",
            backend.url(),
            proxy.port()
        ));
        let is_served = || gateway.get("/", "").status == 200;
        assert!(wait_until(PATIENCE, is_served), "{slots}");
        for (number, (sent, leave)) in ways.into_iter().enumerate() {
            until_quiet(&redis);
            proxy.set(Faults { latency: Duration::from_millis(300), ..Faults::default() });
            leaves_during_the_decision(&redis, &gateway, sent, leave);
            let abandoned =
                || outcomes(&gateway).contains(&("abandoned".into(), number as u64 + 1));
            assert!(wait_until(PATIENCE, abandoned), "{slots} {number}: {:?}", outcomes(&gateway));
            proxy.set(Faults::default());
            assert!(wait_until(PATIENCE, is_served), "{slots}: {number} has the slot for ever");
        }
        assert!(backend.seen().iter().all(|seen| seen.line() == "GET / HTTP/1.1"));
    }
}
