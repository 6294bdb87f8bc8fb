//! The same handler over a socket, on workers.

use super::{Desk, TOKEN};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use tollgate_net::{FrontendServer, Limits, Listener};
use tollgate_server::front::admin::AdminHandler;

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn calls_are_answered_over_http() {
    let desk = Desk::new();
    let listener =
        Listener::bind(tollgate_observe::metrics::Front::Admin, "127.0.0.1:0".parse().unwrap())
            .unwrap();
    let address = listener.address();
    let admin = Arc::clone(&desk.admin);
    let server = FrontendServer::builder()
        .workers(NonZero::new(2).unwrap())
        .front(listener, Limits::default(), move || AdminHandler(Arc::clone(&admin)))
        .start()
        .unwrap();
    let get = |path: &str| {
        exchange(address, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"))
    };
    assert!(get("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(get("/v1/policy").starts_with("HTTP/1.1 401 "));
    let head = exchange(address, "HEAD /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-length: 3\r\n"), "{head}");
    let no_uri = get("/<");
    assert!(no_uri.starts_with("HTTP/1.1 400 ") && no_uri.contains("is not a URI"), "{no_uri}");
    let body = r#"{"mode": "off"}"#;
    let answer = exchange(
        address,
        &format!(
            "PUT /v1/limits/login%2Fip/mode HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: \
             Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(desk.node.gate.overrides().len(), 1);
    let large = exchange(
        address,
        &format!(
            "POST /v1/inspect HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer \
             {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: 65537\r\n\r\n"
        ),
    );
    assert!(large.starts_with("HTTP/1.1 413 "), "{large}");
    server.drain(Duration::from_secs(5));
}
