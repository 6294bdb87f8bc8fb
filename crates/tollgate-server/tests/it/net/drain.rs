//! A drain waits for the requests in flight, and for nothing else.

use crate::http::{post, serve, serve_with};
use std::{io::Write, net::TcpStream, time::Duration};
use tollgate_net::Limits;

const FILE: &str = "limits: [{name: a, rate: 1000/h}]";

#[test]
fn a_request_in_flight_is_answered() {
    let served = serve(FILE);
    let mut client = served.client();
    assert_eq!(client.post("/v1/check", "{}").status, 200);
    let request = post("/v1/check", r#"{"cost": 2}"#);
    let (begun, rest) = request.split_at(request.len() - 3);
    client.send(begun.as_bytes());
    let stats = served.server.stats()[0].1.clone();
    let handle = served.server.handle();
    let address = served.address;
    let ended = std::thread::spawn(move || served.server.join());
    handle.begin(Duration::from_secs(60));
    // Once the listener is closed, the drain has begun.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    client.send(rest.as_bytes());
    let answer = client.answer();
    assert_eq!(answer.json()["limits"][0]["remaining"], 997);
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(client.is_ended());
    drop(client);
    ended.join().unwrap();
    assert_eq!((stats.open(), stats.cut()), (0, 0));
}

#[test]
fn what_does_not_finish_is_cut() {
    let mut limits = Limits::default();
    (limits.drain_grace, limits.tick) = (Duration::from_millis(50), Duration::from_millis(10));
    let served = serve_with(FILE, limits);
    let mut client = served.client();
    client.send(b"POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{");
    let mut other = served.client();
    assert_eq!(other.post("/v1/check", "{}").status, 200);
    let stats = served.server.stats()[0].1.clone();
    served.server.drain(Duration::from_secs(2));
    assert!(client.is_ended());
    assert!(other.is_ended());
    assert_eq!((stats.open(), stats.cut()), (0, 1), "the idle one left in time");
    client.0.write_all(b"}").ok();
}
