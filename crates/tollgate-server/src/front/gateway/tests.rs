//! The gateway over pipes in virtual time, with servers on real sockets.

mod pipelines;

use super::{Gateway, GatewayState};
use crate::Node;
use std::{path::Path, rc::Rc, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::{TcpListener, TcpStream},
};
use tollgate::engine::GateSetup;
use tollgate_net::{
    Limits,
    tests::rig::{Rig, answer, run, seconds},
};
use tollgate_observe::metrics::{ExpositionFormat, MetricsSnapshot};
use tollgate_policy::Compiled;

/// A gateway in front of an upstream at this address.
fn gateway(listener: &TcpListener, more: &str) -> Rc<Gateway> {
    let address = listener.local_addr().unwrap();
    let file = format!("upstream: {{servers: 'http://{address}', {more}}}");
    let (compiled, setup) = load(&file);
    let node = Arc::new(Node::new(compiled, setup).unwrap());
    Rc::new(Gateway::new(Arc::new(GatewayState::new(node, Path::new(".")).unwrap())))
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A connection on which a whole head has arrived.
async fn accept(listener: TcpListener) -> TcpStream {
    let mut stream = listener.accept().await.unwrap().0;
    read_head(&mut stream).await;
    stream
}

async fn read_head(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    head
}

/// The start of a response does not extend the deadline for the rest of its head.
#[test]
fn an_answer_in_pieces_has_the_time_of_one() {
    run(async {
        let listener = listen().await;
        let gateway = gateway(&listener, "timeouts: {response: 10s}");
        tokio::task::spawn_local(async move {
            let mut stream = accept(listener).await;
            tokio::time::sleep(seconds(8)).await;
            stream.write_all(b"HTTP/1.1 20").await.unwrap();
            std::future::pending::<()>().await;
        });
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&gateway);
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert!(answer(&mut client).await.0.starts_with("http/1.1 504"));
        rig.passed(seconds(10));
    });
}

/// The gateway forwards a head without waiting for a small body that follows.
#[test]
fn a_head_does_not_wait_for_its_body() {
    run(async {
        let listener = listen().await;
        let gateway = gateway(&listener, "");
        let (head_is_read, on_head) = tokio::sync::oneshot::channel();
        tokio::task::spawn_local(async move {
            let mut stream = accept(listener).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await.unwrap();
            on_head.await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            std::future::pending::<()>().await;
        });
        // Timers are late by ten minutes, so a head that waits for a timer shows in virtual time.
        let rig = Rig::new(Limits { tick: seconds(600), ..Limits::default() });
        let mut client = rig.connect_to(&gateway);
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        rig.passed(seconds(0));
        head_is_read.send(()).unwrap();
        let mut body = [0; 5];
        client.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"hello");
    });
}

/// A request that the connection refuses is counted and logged, without its secrets.
#[test]
fn malformed_requests_leave_a_trace() {
    run(async {
        let folder =
            std::env::temp_dir().join(format!("tollgate-malformed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = b"upstream: 'http://127.0.0.1:9'\nlog: {access: {format: common, to: a.log}}\n\
            identity: {api_key: query.key}";
        let compiled = tollgate_policy::compile(file).unwrap();
        let setup = tollgate::engine::GateSetup::of(&compiled);
        let node = Arc::new(Node::in_folder(&folder, compiled, setup).unwrap());
        let state = Arc::new(GatewayState::new(node.clone(), Path::new(".")).unwrap());
        let gateway = Rc::new(Gateway::new(state));
        let rig = Rig::new(Limits::default());
        for request in [
            "GET /x?key=SECRET HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "rubbish\r\n\r\n",
            &format!("GET /long HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000)),
        ] {
            let mut client = rig.connect_to(&gateway);
            let _ = client.write_all(request.as_bytes()).await;
            assert!(answer(&mut client).await.0.starts_with("http/1.1 4"), "{request}");
        }
        node.records.flush(seconds(10));
        let text = std::fs::read_to_string(folder.join("a.log")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let requests: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(1)).collect();
        let expected = ["GET /x?key=*** HTTP/1.1", "- - HTTP/1.1", "GET /long HTTP/1.1"];
        assert_eq!(requests, expected, "{text}");
        assert!(text.contains("\" 400 ") && text.contains("\" 431 "), "{text}");
        let metrics =
            node.metrics.exposition(&MetricsSnapshot::default(), ExpositionFormat::Prometheus);
        let line = "tollgate_requests_total{front=\"gateway\",outcome=\"invalid\"} 3";
        assert!(metrics.contains(line), "{metrics}");
    });
}

/// A file's policy, and the setup of its gate.
fn load(file: &str) -> (Compiled, GateSetup) {
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    let setup = GateSetup::of(&compiled);
    (compiled, setup)
}

/// Sends two requests to a gateway with one slot: the first gets the slot, the second waits.
async fn send_two(
    rig: &Rig,
    (compiled, setup): (Compiled, GateSetup),
    head: &str,
) -> (Arc<Node>, [DuplexStream; 2]) {
    let node = Arc::new(Node::new(compiled, setup).unwrap());
    let state = Arc::new(GatewayState::new(node.clone(), Path::new(".")).unwrap());
    let gateway = Rc::new(Gateway::new(state));
    let clients = [0, 1].map(|waiting| (waiting, rig.connect_to(&gateway)));
    let mut sent = Vec::new();
    for (waiting, mut client) in clients {
        client.write_all(head.as_bytes()).await.unwrap();
        // Virtual time does not pass while a task is ready, so the second request still waits.
        let seen = || node.gate.adaptive().map(|shed| (shed.in_flight, shed.waiting));
        while seen() != Some((1, waiting)) {
            tokio::task::yield_now().await;
        }
        sent.push(client);
    }
    (node, sent.try_into().unwrap())
}

/// A request waits for a slot during a reload: it is counted by the tiers of the old policy.
#[test]
fn a_reload_does_not_change_the_tier_of_a_request_that_waits() {
    let file = |address, tier: &str| {
        load(&format!(
            "upstream: 'http://{address}'\nidentity: {{plan: header.x-plan}}\ntiers: {{from: plan}}\n\
             shed: {{adaptive: {{min: 1, max: 1}}}}\n\
             limits: [{{name: all, key: [plan], rate: 9/h, tiers: {{{tier}: 9/h, free: 9/h}}}}]"
        ))
    };
    run(async {
        let (listener, rig) = (listen().await, Rig::new(Limits::default()));
        let address = listener.local_addr().unwrap();
        let head = "GET / HTTP/1.1\r\nhost: x\r\nx-plan: pro\r\n\r\n";
        let (node, mut clients) = send_two(&rig, file(address, "pro"), head).await;
        let (compiled, setup) = file(address, "gold");
        node.replace(compiled, setup).unwrap();
        assert!(answer(&mut clients[1]).await.0.starts_with("http/1.1 503"));
        let metrics =
            node.metrics.exposition(&MetricsSnapshot::default(), ExpositionFormat::Prometheus);
        let shed = |tier| metrics.contains(&format!("{{tier=\"{tier}\",outcome=\"shed\"}} 1"));
        assert_eq!((shed("pro"), shed("other")), (true, false), "{metrics}");
    });
}

/// A request waits for a slot during a reload: it is forwarded by the `trusted_proxies` of the
/// policy that decided it.
#[test]
fn a_reload_does_not_change_the_trust_of_a_request_that_waits() {
    let file = |address, trusted: &str| {
        load(&format!(
            "upstream: 'http://{address}'\ntrusted_proxies: [{trusted}]\n\
             shed: {{adaptive: {{min: 1, max: 1}}}}"
        ))
    };
    run(async {
        let (listener, rig) = (listen().await, Rig::new(Limits::default()));
        let address = listener.local_addr().unwrap();
        let head = "GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 9.9.9.9\r\n\r\n";
        let (node, _clients) = send_two(&rig, file(address, "0.0.0.0/0"), head).await;
        let exchange = async {
            let mut server = accept(listener).await;
            let (compiled, setup) = file(address, "");
            node.replace(compiled, setup).unwrap();
            server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            let head = String::from_utf8(read_head(&mut server).await).unwrap();
            assert!(head.contains("x-forwarded-for: 9.9.9.9, "), "{head}");
        };
        // Virtual time does not pass while a task is ready, so no request waits too long.
        let busy = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = exchange => {}
            () = busy => {}
        }
    });
}
