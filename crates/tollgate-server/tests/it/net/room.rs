//! Too many connections, or too few descriptors: other clients still get their answers.

use crate::http::{Client, serve, serve_with};
use std::{io::Read, net::TcpStream, process::Command, time::Duration};
use tollgate_net::Limits;
use tollgate_observe::metrics::{ExpositionFormat, MetricsSnapshot};

const FILE: &str = "limits: [{name: a, rate: 1000/h}]";

#[test]
fn one_too_many_takes_the_place_of_the_idle() {
    let limits = Limits { connections_max: 4, ..Limits::default() };
    let served = serve_with(FILE, limits);
    let stats = served.server.stats()[0].1.clone();
    let mut silent: Vec<_> = (0..4).map(|_| served.client()).collect();
    while stats.open() < 4 {
        std::thread::yield_now();
    }
    // Longer ago than the resolution of the deadlines, so that the order is certain.
    std::thread::sleep(Limits::default().tick * 2);
    for _ in 0..8 {
        let mut client = served.client();
        assert_eq!(client.post("/v1/check", "{}").status, 200);
        silent.push(client);
        assert!(stats.open() <= 4);
    }
    assert_eq!(stats.evicted(), 8);
    let page =
        served.node.metrics.exposition(&MetricsSnapshot::default(), ExpositionFormat::Prometheus);
    let row = "tollgate_connections_closed_total{front=\"http\",reason=\"evicted\"} 8\n";
    assert!(page.contains(row), "{page}");
    assert!(silent[0].is_ended());
}

#[test]
fn silent_clients_cost_others_nothing_and_are_closed() {
    let mut limits = Limits::default();
    (limits.head, limits.tick) = (Duration::from_millis(300), Duration::from_millis(50));
    let served = serve_with(FILE, limits);
    let mut silent: Vec<_> = (0..50).map(|_| served.client()).collect();
    silent[0].send(b"POST /v1/che");
    assert_eq!(served.post("/v1/check", "{}").status, 200);
    assert_eq!(silent[0].answer().status, 408);
    assert!(silent.iter_mut().all(Client::is_ended));
}

/// Runs in a separate process with few descriptors. See [`too_few_descriptors`].
const FEW: &str = "TOLLGATE_TEST_FEW_DESCRIPTORS";

#[test]
fn too_few_descriptors() {
    if std::env::var_os(FEW).is_some() {
        return with_few_descriptors();
    }
    let program = std::env::current_exe().unwrap();
    let run = format!(
        "ulimit -n 64; exec '{}' --exact net::room::too_few_descriptors",
        program.display()
    );
    let output = Command::new("sh").args(["-c", &run]).env(FEW, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The server shares its process with a peer that takes every descriptor it can get. One side or
/// the other runs out, until neither can accept. When the peer closes some, other clients are
/// served again.
fn with_few_descriptors() {
    let served = serve(FILE);
    let stats = served.server.stats()[0].1.clone();
    let mut held = Vec::new();
    while stats.accept_errors() == 0 {
        match TcpStream::connect(served.address) {
            Ok(stream) => held.push(stream),
            Err(_) => std::thread::yield_now(),
        }
    }
    held.truncate(8);
    assert_eq!(served.post("/v1/check", "{}").status, 200);
    drop(held);
    let mut client = served.client();
    assert_eq!(client.post("/v1/check", "{}").status, 200);
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
}
