//! Requests in pieces, pipelined, and with the end of the connection.

use super::*;
use std::net::Shutdown;

const FILE: &str = "limits: [{name: a, rate: 1000/h, algorithm: fixed-window}]";

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let served = serve(FILE);
    let mut client = served.client();
    let all: String =
        (1..=20).map(|cost| post("/v1/check", &format!(r#"{{"cost": {cost}}}"#))).collect();
    client.send(all.as_bytes());
    let mut left = 1000;
    for cost in 1..=20 {
        left -= cost;
        assert_eq!(client.answer().json()["limits"][0]["remaining"], left);
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let served = serve(FILE);
    let mut client = served.client();
    client.0.set_nodelay(true).unwrap();
    for byte in post("/v1/check", r#"{"attributes": {"user": "\u0041"}}"#).bytes() {
        client.send(&[byte]);
    }
    assert_eq!(client.answer().status, 200);
}

#[test]
fn whoever_has_said_all_still_hears_the_answer() {
    let served = serve(FILE);
    let mut client = served.client();
    client.send(post("/v1/check", "{}").as_bytes());
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().status, 200);
    assert!(client.is_ended());
}

#[test]
fn http_1_0_is_answered_and_closed() {
    let served = serve(FILE);
    let mut client = served.client();
    client.send(
        b"POST /v1/check HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    );
    assert_eq!(client.answer().status, 200);
    assert!(client.is_ended());
}

#[test]
fn a_large_answer_arrives_whole() {
    let limits: String =
        (0..400).map(|n| format!("  - {{name: limit-{n}, rate: 10/h}}\n")).collect();
    let served = serve(&format!("limits:\n{limits}"));
    let mut client = served.client();
    for left in [9, 8] {
        let json = client.post("/v1/check", "{}").json();
        let rows = json["limits"].as_array().unwrap();
        assert_eq!(rows.len(), 400);
        assert!(rows.iter().all(|row| row["remaining"] == left));
    }
}
