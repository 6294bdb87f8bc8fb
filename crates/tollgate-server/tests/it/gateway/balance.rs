//! Several upstreams: which one gets a request, and what happens when one fails.

use super::{Backend, Gateway, ok};
use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

fn file(servers: &[&Backend], more: &str) -> String {
    let servers: Vec<String> = servers.iter().map(|server| server.url()).collect();
    let servers = servers.join(", ");
    format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: [{servers}]{more}}}\n")
}

#[test]
fn servers_take_turns() {
    let backends = [Backend::usual(), Backend::usual(), Backend::usual()];
    let all: Vec<&Backend> = backends.iter().collect();
    for balance in ["round-robin", "least-requests"] {
        let gateway = Gateway::new(&file(&all, &format!(", balance: {balance}")));
        let before: Vec<usize> = backends.iter().map(|one| one.seen().len()).collect();
        for _ in 0..9 {
            assert_eq!(gateway.get("/", "").status, 200);
        }
        let shares = backends.iter().zip(before).map(|(one, before)| one.seen().len() - before);
        assert_eq!(shares.collect::<Vec<_>>(), [3, 3, 3], "{balance}");
    }
}

/// An upstream that is down costs no client a response.
#[test]
fn another_server_is_tried_where_one_cannot_be_reached() {
    let good = Backend::usual();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: [http://{gone}, {}]\n",
        good.url()
    ));
    for _ in 0..10 {
        let mut client = gateway.client();
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab");
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(good.seen().len(), 10);
    assert!(good.seen().iter().all(|seen| seen.body == b"ab"));
}

/// An upstream that reports itself unhealthy gets no requests until it is healthy again.
#[test]
fn sick_servers_are_left_alone() {
    let is_sick = Arc::new(AtomicBool::new(true));
    let (sick, served) = (is_sick.clone(), Arc::new(AtomicUsize::new(0)));
    let count = served.clone();
    let moody = Backend::new(move |seen, stream| {
        if !seen.line().contains("/healthz") {
            count.fetch_add(1, Ordering::SeqCst);
            return ok(stream, "moody");
        }
        let status = if sick.load(Ordering::SeqCst) { 500 } else { 200 };
        std::io::Write::write_all(
            stream,
            format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").as_bytes(),
        )
        .is_ok()
    });
    let good = Backend::usual();
    let health = ", health: {path: /healthz, interval: 20ms, unhealthy_after: 1, healthy_after: 1}";
    let gateway = Gateway::new(&file(&[&moody, &good], health));
    let checks = || moody.seen().iter().filter(|seen| seen.line().contains("/healthz")).count();
    // Once the next check arrives, the previous one has certainly been answered.
    while checks() < 2 {
        std::thread::yield_now();
    }
    let before = served.load(Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(gateway.get("/", "").body, "hello");
    }
    assert_eq!(served.load(Ordering::SeqCst), before);
    is_sick.store(false, Ordering::SeqCst);
    while gateway.get("/", "").body != "moody" {}
}

/// A reload sends requests to another upstream, without a restart.
#[test]
fn servers_can_be_changed_while_requests_pass() {
    let (one, other) = (Backend::usual(), Backend::new(|_, stream| ok(stream, "other")));
    let gateway = Gateway::new(&file(&[&one], ""));
    assert_eq!(gateway.get("/", "").body, "hello");
    let path = gateway.folder.join("tollgate.yaml");
    std::fs::write(gateway.folder.join("next"), file(&[&other], "")).unwrap();
    std::fs::rename(gateway.folder.join("next"), path).unwrap();
    while gateway.get("/", "").body != "other" {
        std::thread::yield_now();
    }
}

fn readiness(gateway: &Gateway) -> (bool, String) {
    let health = &gateway.running().node().health;
    let detail = health.problems();
    let upstream = detail.iter().find(|(subject, _)| subject == "upstream");
    (health.is_ready(), upstream.map(|(_, text)| text.to_string()).unwrap_or_default())
}

/// If no upstream is healthy, the node is not ready, so that load balancers use another node.
#[test]
fn a_node_whose_upstreams_are_all_sick_is_not_ready() {
    let is_sick = Arc::new(AtomicBool::new(true));
    let sick = is_sick.clone();
    let moody = Backend::new(move |_, stream| {
        let status = if sick.load(Ordering::SeqCst) { 500 } else { 200 };
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        std::io::Write::write_all(stream, answer.as_bytes()).is_ok()
    });
    let health = ", health: {path: /healthz, interval: 20ms, unhealthy_after: 1, healthy_after: 1}";
    let gateway = Gateway::new(&file(&[&moody], health));
    while readiness(&gateway).0 {
        std::thread::yield_now();
    }
    let (_, detail) = readiness(&gateway);
    assert!(detail.starts_with("every upstream fails its health check: 127.0.0.1:"), "{detail}");
    is_sick.store(false, Ordering::SeqCst);
    while !readiness(&gateway).0 {
        std::thread::yield_now();
    }
    assert_eq!(readiness(&gateway).1, "");
}

/// Without health checks, only the last attempts are known: the node stays ready and reports them.
#[test]
fn upstreams_that_cannot_be_reached_are_named() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{gone}\nlimits: []\n"
    ));
    assert_eq!(readiness(&gateway), (true, String::new()));
    assert_eq!(gateway.get("/", "").status, 502);
    while readiness(&gateway).1.is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(readiness(&gateway), (true, format!("no upstream could be reached: {gone}")));
}
