//! Limits at the gateway, in addition to the table shared with the tower layer.

use super::{Backend, Gateway, ok, signal, wait};
use std::io::Write;

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
    // The upstream's limit is tighter.
    assert_eq!(answer.field("x-ratelimit-remaining"), Some("1"));
}

/// A request is charged even if its client disconnects before the response.
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

/// The cost that a response reports is charged, also in an event stream.
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
