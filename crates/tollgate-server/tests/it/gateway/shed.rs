//! Shedders at the gateway: queueing, shedding and refunds.

use super::{Backend, Gateway, PATIENCE, get, ok, signal, wait};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tollgate_faults::clock::wait_until;
use tollgate_observe::metrics::Front;

fn gateway(backend: &Backend, more: &str) -> Gateway {
    let url = backend.url();
    Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0', admin: '127.0.0.1:0'}}\nupstream: {url}\n\
         headers: [draft-11]\nlimits: [{{name: a, rate: 100/366d, algorithm: fixed-window}}]\n{more}\n"
    ))
}

/// A value of `/metrics`.
fn figure(gateway: &Gateway, name: &str) -> Option<u64> {
    let page = get(gateway.running().address(Front::Admin).unwrap(), "/metrics", "").body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.parse().ok()
}

const OFFERED: &str = "tollgate_class_offered_total{class=\"default\"}";
const IN_FLIGHT: &str = "tollgate_in_flight{class=\"default\"}";

#[test]
fn a_busy_upstream_gets_no_more_than_it_can_take() {
    let (release, released) = signal();
    let backend = Backend::new(move |_, stream| {
        wait(&released);
        ok(stream, "hello")
    });
    let gateway = gateway(&backend, "shed: {adaptive: {min: 1, max: 1}}");
    assert_eq!(figure(&gateway, "tollgate_adaptive_limit"), Some(1));
    let address = gateway.address();
    let first = std::thread::spawn(move || get(address, "/", "").status);
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    assert_eq!(figure(&gateway, IN_FLIGHT), Some(1));
    // The slot is taken: this request waits, and is shed.
    let shed = get(address, "/", "");
    assert_eq!(shed.status, 503);
    assert_eq!(shed.field("x-tollgate-source"), Some("shed"));
    assert_eq!(shed.field("content-type"), Some("application/problem+json"));
    let wait_s: u64 = shed.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    assert!(shed.body.contains("#temporary-reduced-capacity\""), "{}", shed.body);
    assert_eq!(backend.seen().len(), 1, "the upstream did not see it");
    release.send(()).unwrap();
    assert_eq!(first.join().unwrap(), 200);
    assert!(wait_until(PATIENCE, || figure(&gateway, IN_FLIGHT) == Some(0)));
    let by_reason = ["adaptive", "queue"].map(|reason| {
        let name = format!("tollgate_shed_total{{class=\"default\",reason=\"{reason}\"}}");
        figure(&gateway, &name).unwrap()
    });
    assert_eq!(by_reason.iter().sum::<u64>(), 1, "{by_reason:?}");
    assert_eq!(
        figure(&gateway, "tollgate_requests_total{front=\"gateway\",outcome=\"shed\"}"),
        Some(1)
    );
    // Two requests were charged, and one was refunded.
    release.send(()).unwrap();
    let next = get(address, "/", "");
    assert_eq!(
        (next.status, next.field("ratelimit").unwrap().starts_with("\"a\";r=98")),
        (200, true)
    );
}

#[test]
fn a_client_that_leaves_the_queue_is_forgotten() {
    let (release, released) = signal();
    let backend = Backend::new(move |_, stream| {
        wait(&released);
        ok(stream, "hello")
    });
    let gateway = gateway(&backend, "shed: {adaptive: {min: 1, max: 1}}");
    let address = gateway.address();
    let first = std::thread::spawn(move || get(address, "/", "").status);
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    for _ in 0..20 {
        let mut client = gateway.client();
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        drop(client);
    }
    // The slot is taken, so each of these requests waits until its client leaves or it is shed.
    let ended = || {
        let name =
            |outcome| format!("tollgate_requests_total{{front=\"gateway\",outcome=\"{outcome}\"}}");
        ["abandoned", "shed"]
            .iter()
            .filter_map(|outcome| figure(&gateway, &name(outcome)))
            .sum::<u64>()
    };
    assert!(wait_until(PATIENCE, || 20_u64 == ended()));
    assert_eq!((backend.seen().len(), figure(&gateway, IN_FLIGHT)), (1, Some(1)));
    release.send(()).unwrap();
    assert_eq!(first.join().unwrap(), 200);
    release.send(()).unwrap();
    let next = get(address, "/", "");
    assert_eq!(next.status, 200);
    assert!(next.field("ratelimit").unwrap().starts_with("\"a\";r=98"), "{next:?}");
    assert!(wait_until(PATIENCE, || figure(&gateway, IN_FLIGHT) == Some(0)));
    // Every request that reached a shedder is counted once: two served, twenty left or shed.
    let by_class = |name: &str| {
        figure(&gateway, &format!("tollgate_{name}_total{{class=\"default\"}}")).unwrap()
    };
    let shed = |reason| {
        figure(&gateway, &format!("tollgate_shed_total{{class=\"default\",reason=\"{reason}\"}}"))
    };
    let shed: u64 = ["fleet", "adaptive", "queue"].iter().filter_map(shed).sum();
    assert_eq!((figure(&gateway, OFFERED), by_class("class_admitted")), (Some(22), 2));
    assert_eq!(by_class("class_left") + shed, 20);
}

/// Operators can override the mode of shedders by name.
#[test]
fn operators_switch_shedders_as_limits() {
    let backend = Backend::usual();
    let gateway = gateway(
        &backend,
        "admin: {token: secret}\nclasses: [{name: critical, match: {path: /c}}, {name: normal, default: true}]\n\
         shed: {fleet: {capacity: 10, reserve: {critical: 100%}}, adaptive: {}}",
    );
    let admin = gateway.running().address(Front::Admin).unwrap();
    let switch = |name: &str, mode: &str| {
        let mut client = super::connect(admin);
        let body = format!("{{\"mode\": \"{mode}\"}}");
        let length = body.len();
        client.send(
            format!(
                "PUT /v1/limits/{name}/mode?scope=node HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer secret\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        client.answer().status
    };
    assert_eq!(gateway.get("/", "").status, 503);
    assert_eq!(gateway.get("/c", "").status, 200);
    for (name, mode, expected) in [
        ("shed%2Ffleet", "off", 200),
        ("shed%2Ffleet", "enforce", 503),
        ("shed%2Ffleet", "shadow", 200),
        ("*", "enforce", 503),
        ("*", "off", 200),
        ("shed%2Fadaptive", "enforce", 200),
    ] {
        assert_eq!(switch(name, mode), 200, "{name} {mode}");
        assert_eq!(gateway.get("/", "").status, expected, "{name} {mode}");
    }
    assert_eq!(switch("shed%2Fother", "off"), 404);
}

/// The upstream cannot work on a request whose body has not arrived, so the request holds no slot.
#[test]
fn a_slow_upload_holds_no_slot() {
    let (release, released) = signal();
    let backend = Backend::new(move |seen, stream| {
        if seen.line().starts_with("POST") {
            wait(&released);
        }
        ok(stream, "hello")
    });
    let gateway = gateway(&backend, "shed: {adaptive: {min: 1, max: 1}}");
    let mut uploads: Vec<_> = (0..3)
        .map(|_| {
            let mut client = gateway.client();
            client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab");
            client
        })
        .collect();
    assert!(wait_until(PATIENCE, || figure(&gateway, IN_FLIGHT) == Some(3)));
    assert!(wait_until(PATIENCE, || gateway.get("/", "").status == 200));
    // Its body has arrived, so the upstream works on it.
    uploads[0].send(b"cd");
    assert!(wait_until(PATIENCE, || backend.seen().iter().any(|seen| seen.body == b"abcd")));
    assert_eq!(gateway.get("/", "").status, 503);
    release.send(()).unwrap();
    assert_eq!(uploads[0].answer().status, 200);
    assert_eq!(gateway.get("/", "").status, 200);
    // A client that disconnects in the middle leaks no slot.
    drop(uploads);
    assert!(wait_until(PATIENCE, || figure(&gateway, IN_FLIGHT) == Some(0)));
    assert_eq!(gateway.get("/", "").status, 200);
}

/// Uploads over one HTTP/2 connection: where to send parts of their bodies, and the statuses of
/// their responses. Dropping a sender ends its body.
fn http2_uploads<const N: usize>(
    address: SocketAddr,
) -> ([UnboundedSender<&'static str>; N], Receiver<u16>) {
    let (statuses, responses) = mpsc::channel();
    let channels: [_; N] = std::array::from_fn(|_| unbounded_channel::<&'static str>());
    let (senders, parts): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) =
                http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let uploads = parts.into_iter().map(|parts| {
                let frames = stream::unfold(parts, |mut parts| async {
                    let part = parts.recv().await?;
                    let frame = Frame::data(Bytes::from_static(part.as_bytes()));
                    Some((Ok::<_, Infallible>(frame), parts))
                });
                let request = hyper::Request::post(format!("http://{address}/"));
                let request = request.body(StreamBody::new(Box::pin(frames))).unwrap();
                let response = sender.send_request(request);
                let statuses = statuses.clone();
                tokio::spawn(async move {
                    if let Ok(response) = response.await {
                        statuses.send(response.status().as_u16()).ok();
                    }
                })
            });
            for upload in uploads.collect::<Vec<_>>() {
                upload.await.unwrap();
            }
        });
    });
    (senders.try_into().unwrap(), responses)
}

#[test]
fn a_slow_upload_over_http2_holds_no_slot() {
    let (release, released) = signal();
    let backend = Backend::new(move |seen, stream| {
        if seen.line().starts_with("POST") {
            wait(&released);
        }
        ok(stream, "hello")
    });
    let gateway = gateway(&backend, "shed: {adaptive: {min: 1, max: 1}}");
    let ([first, others @ ..], responses) = http2_uploads::<3>(gateway.address());
    first.send("ab").unwrap();
    others.iter().for_each(|upload| upload.send("ab").unwrap());
    assert!(wait_until(PATIENCE, || figure(&gateway, IN_FLIGHT) == Some(3)));
    assert!(wait_until(PATIENCE, || gateway.get("/", "").status == 200));
    // Its body has arrived, so the upstream works on it.
    first.send("cd").unwrap();
    drop(first);
    assert!(wait_until(PATIENCE, || backend
        .seen()
        .iter()
        .any(|seen| seen.line().starts_with("POST"))));
    assert!(wait_until(PATIENCE, || gateway.get("/", "").status == 503));
    release.send(()).unwrap();
    assert_eq!(responses.recv_timeout(PATIENCE), Ok(200));
    assert!(wait_until(PATIENCE, || gateway.get("/", "").status == 200));
}

/// Most upstreams do the work of a call whose client has left, so it keeps its slot.
#[test]
fn a_client_that_leaves_frees_its_slot_when_the_upstream_is_done() {
    let (release, released) = signal();
    let backend = Backend::new(move |seen, stream| {
        if seen.line().starts_with("GET /slow") {
            wait(&released);
        }
        ok(stream, "hello")
    });
    let gateway = gateway(&backend, "shed: {adaptive: {min: 1, max: 1}}");
    let mut client = gateway.client();
    client.send(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(wait_until(PATIENCE, || backend.seen().len() == 1));
    drop(client);
    assert!(wait_until(PATIENCE, || figure(&gateway, IN_FLIGHT) == Some(0)));
    assert_eq!(gateway.get("/", "").status, 503, "the upstream may still work on the first");
    // No call ends, so the slot is free after a second.
    assert!(wait_until(PATIENCE, || gateway.get("/", "").status == 200));
    release.send(()).ok();
}
