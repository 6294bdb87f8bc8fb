//! Limits in the path: what is refused, what is told, what is held and for how long.

use super::{Backend, Gateway, ok, signal, wait};
use std::io::{Read, Write};

#[test]
fn refusals_never_reach_the_server() {
    let backend = Backend::usual();
    let file = "identity: {user: header.x-user-id}
headers: [draft-11]
limits: [{name: per-user, key: [user], rate: 2/h, algorithm: fixed-window}]";
    let gateway = Gateway::before(&backend, file);
    for left in [1, 0] {
        let answer = gateway.get("/", "x-user-id: 7\r\n");
        assert_eq!(answer.status, 200);
        let shown = answer.field("ratelimit").unwrap();
        assert!(shown.starts_with(&format!("\"per-user\";r={left};t=")), "{shown}");
    }
    let answer = gateway.get("/", "x-user-id: 7\r\n");
    assert_eq!(
        (answer.status, answer.field("content-type")),
        (429, Some("application/problem+json"))
    );
    assert_eq!(answer.json()["violated-policies"][0], "per-user");
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert!(answer.field("retry-after").is_some());
    let answer = gateway.get("/", "x-user-id: 7\r\naccept: application/json\r\n");
    assert_eq!(answer.json()["error"], "rate_limit_exceeded");
    assert_eq!(gateway.get("/", "x-user-id: 8\r\n").status, 200);
    assert_eq!(backend.seen().len(), 3);
}

#[test]
fn the_servers_own_fields_are_added_to() {
    let backend = Backend::new(|_, stream| {
        let text = b"HTTP/1.1 200 OK\r\nratelimit: \"own\";r=1\r\nratelimit-policy: \"own\";q=5\r\n\
                     x-ratelimit-limit: 5\r\nx-ratelimit-remaining: 1\r\nx-ratelimit-reset: 9\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(text).is_ok()
    });
    let file = "limits: [{name: ours, rate: 100/h, algorithm: fixed-window}]";
    let gateway = Gateway::before(&backend, file);
    let answer = gateway.get("/", "");
    let list = answer.field("ratelimit").unwrap();
    assert!(list.starts_with("\"own\";r=1, \"ours\";r=99"), "{list}");
    // Theirs is tighter.
    assert_eq!(answer.field("x-ratelimit-remaining"), Some("1"));
}

/// A slot is held until the answer's last byte, and freed when the client goes before.
#[test]
fn slots_are_held_until_the_answer_ends_or_the_client_goes() {
    let (go, gone) = signal();
    let backend = Backend::new(move |seen, stream| {
        if !seen.line().contains("/slow") {
            return ok(stream, "x");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabc").unwrap();
        wait(&gone);
        stream.write_all(b"def").is_ok()
    });
    let limit = "limits: [{name: a, algorithm: concurrency, rate: 1}]";
    let gateway = Gateway::before(&backend, limit);
    let mut client = gateway.client();
    client.send(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
    super::read_head(&mut client.0).unwrap();
    client.0.read_exact(&mut [0; 3]).unwrap();
    assert_eq!(gateway.get("/", "").status, 429, "the answer has not ended");
    go.send(()).unwrap();
    client.0.read_exact(&mut [0; 3]).unwrap();
    while gateway.get("/", "").status == 429 {}

    client.send(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
    super::read_head(&mut client.0).unwrap();
    assert_eq!(gateway.get("/", "").status, 429);
    drop(client);
    while gateway.get("/", "").status == 429 {}
    go.send(()).unwrap();
}

/// Who has gone is still counted, and what they waited for is not.
#[test]
fn aborted_requests_are_charged() {
    let (go, gone) = signal();
    let (asked, has_asked) = signal();
    let backend = Backend::new(move |_, stream| {
        asked.send(()).unwrap();
        wait(&gone);
        ok(stream, "x")
    });
    let limit = "limits: [{name: a, rate: 2/h, algorithm: fixed-window}]";
    let gateway = Gateway::before(&backend, limit);
    for _ in 0..2 {
        let mut client = gateway.client();
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        wait(&has_asked);
    }
    assert_eq!(gateway.get("/", "").status, 429);
    go.send(()).unwrap();
    go.send(()).unwrap();
}

#[test]
fn answers_refund_what_they_say() {
    let backend = Backend::new(|seen, stream| {
        let status = seen.line().split(['/', ' ']).nth(2).unwrap().to_owned();
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").is_ok()
    });
    let file =
        "limits: [{name: login, rate: 2/h, algorithm: fixed-window, on_response: {refund: [2xx]}}]";
    let gateway = Gateway::before(&backend, file);
    for _ in 0..5 {
        assert_eq!(gateway.get("/200", "").status, 200);
    }
    assert_eq!(gateway.get("/401", "").status, 401);
    assert_eq!(gateway.get("/401", "").status, 401);
    assert_eq!(gateway.get("/200", "").status, 429);
}

/// Whether one more would be let into the queue now.
fn has_room(gateway: &Gateway) -> bool {
    let node = gateway.running().node();
    let rules = node.gate.rules();
    let facts = rules.facts(Default::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut work = tollgate::Work::default();
    let peek = node.gate.peek(&rules, node.clock.now_us(), &facts, 1, &mut work);
    runtime.block_on(peek).allowed
}

/// One waits for an hour, so the next finds the queue full, until the first has gone.
#[test]
fn whoever_leaves_the_queue_makes_room() {
    let backend = Backend::usual();
    let file = "limits: [{name: pace, rate: 1/h, algorithm: leaky-bucket, queue: 1}]";
    let gateway = Gateway::before(&backend, file);
    assert_eq!(gateway.get("/", "").status, 200);
    let mut waiting = gateway.client();
    waiting.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    while has_room(&gateway) {}
    assert_eq!(gateway.get("/", "").status, 429);
    drop(waiting);
    while !has_room(&gateway) {}
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn shaping_lets_requests_through_one_by_one() {
    let backend = Backend::usual();
    let file = "limits: [{name: pace, rate: 50/s, algorithm: leaky-bucket, queue: 5}]";
    let gateway = Gateway::before(&backend, file);
    for _ in 0..5 {
        assert_eq!(gateway.get("/", "").status, 200);
    }
}

/// What an answer says it cost is what it costs, as a stream of events too.
#[test]
fn costs_are_settled_from_answers() {
    let backend = Backend::new(|seen, stream| {
        let text: &[u8] = match seen.line().contains("/stream") {
            true => b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
                      8\r\ndata: {\"\r\n1f\r\nusage\": {\"total_tokens\": 40}}\n\n\r\n0\r\n\r\n",
            false => b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 31\r\n\r\n{\"usage\": {\"total_tokens\": 30}}",
        };
        stream.write_all(text).is_ok()
    });
    let file = "headers: [draft-11]
limits: [{name: tokens, rate: 100/h, algorithm: fixed-window, cost: {estimate: 5, response: {json: usage.total_tokens}}}]";
    let gateway = Gateway::before(&backend, file);
    let left = |path: &str| {
        let mut client = gateway.client();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n").as_bytes());
        let text = super::rest(&mut client);
        let shown = text.lines().find_map(|line| line.strip_prefix("ratelimit: ")).unwrap();
        shown.split(['=', ';']).nth(2).unwrap().to_owned()
    };
    assert_eq!(left("/"), "95");
    assert_eq!(left("/stream"), "65");
    assert_eq!(left("/"), "25");
    assert!(backend.seen().iter().all(|seen| seen.all("accept-encoding").is_empty()));
}
