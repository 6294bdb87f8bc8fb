//! Invalid input gets a 4xx that names the field, and has no other effect.

use super::*;

const FILE: &str = "limits: [{name: a, key: [user], rate: 3/h, algorithm: gcra}]";

/// Request, status, `field`, and parts of the detail.
const BAD: &[(&str, u16, &str, &str)] = &[
    ("POST /v1/chek HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}", 404, "path", "/v1/check"),
    ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", 404, "path", ""),
    ("POST /v1/check/ HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 404, "path", ""),
    ("GET /v1/forward-auth?< HTTP/1.1\r\nhost: x\r\n\r\n", 400, "path", "not a URI"),
    ("GET /v1/check HTTP/1.1\r\n\r\n", 400, "host", "one Host"),
    ("GET /v1/check HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n", 400, "head", "two hosts"),
    (
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
        415,
        "content-encoding",
        "without Content-Encoding",
    ),
    ("GET /v1/check HTTP/1.1\r\nhost: x\r\n\r\n", 405, "method", "POST"),
    ("OPTIONS /v1/settle HTTP/1.1\r\nhost: x\r\n\r\n", 405, "method", "POST"),
    ("DELETE /v1/reserve HTTP/1.1\r\nhost: x\r\n\r\n", 405, "method", "POST"),
    (
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
        415,
        "content-type",
        "curl --json",
    ),
    // A web page whose name resolves to this machine could send JSON.
    (
        "POST /v1/check HTTP/1.1\r\nhost: evil.example\r\norigin: http://evil.example\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        403,
        "origin",
        "web page",
    ),
    (
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}",
        415,
        "content-type",
        "Content-Type: application/json",
    ),
    (
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/jsonx\r\ncontent-length: 2\r\n\r\n{}",
        415,
        "content-type",
        "",
    ),
    (
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 65537\r\n\r\n",
        413,
        "body",
        "65536",
    ),
];

/// Operation, body, `field`, and parts of the detail.
const BAD_BODIES: &[(&str, &str, &str, &str)] = &[
    ("check", "", "body", "not JSON"),
    ("check", "{", "body", "not JSON"),
    ("check", "{} {}", "body", "not JSON"),
    ("check", "[]", "body", ""),
    ("check", "null", "body", ""),
    ("check", r#"{"attributes": {"user": "1"}, "attributes": {}}"#, "attributes", "twice"),
    ("check", r#"{"attributes": {"user": "1", "user": "2"}}"#, "attributes.user", "twice"),
    ("check", r#"{"attribute": {}}"#, "attribute", "unknown"),
    ("check", r#"{"ttl": "30s"}"#, "ttl", ""),
    ("check", r#"{"attributes": {"user": 42}}"#, "attributes.user", ""),
    ("check", r#"{"attributes": {"user": {"a": {"b": {}}}}}"#, "attributes.user", ""),
    ("check", r#"{"attributes": {"ip": "300.0.0.1"}}"#, "attributes.ip", ""),
    (
        "check",
        r#"{"attributes": {"path": "/x//../login"}}"#,
        "attributes.path",
        "dot segments and `//`",
    ),
    ("peek", r#"{"attributes": {"path": "/a%2Fb"}}"#, "attributes.path", "escaped slash"),
    ("reserve", r#"{"attributes": {"path": "/a\\b"}}"#, "attributes.path", "backslash"),
    ("check", r#"{"cost": -1}"#, "cost", "negative"),
    ("check", r#"{"cost": 1.5}"#, "cost", "whole"),
    ("check", r#"{"cost": 1e-3}"#, "cost", "whole"),
    ("check", r#"{"cost": "1"}"#, "cost", ""),
    ("check", r#"{"cost": 18446744073709551616}"#, "cost", ""),
    ("peek", r#"{"reservation": "x"}"#, "reservation", ""),
    ("reserve", r#"{"ttl": "2h"}"#, "ttl", "1h"),
    ("reserve", r#"{"ttl": 30}"#, "ttl", ""),
    ("settle", r#"{"cost": 1}"#, "reservation", "missing"),
    ("settle", r#"{"reservation": "x"}"#, "cost", "missing"),
    ("settle", r#"{"reservation": "x", "cost": 4294967296}"#, "cost", "4294967295"),
    ("cancel", r#"{"reservation": "x", "cost": 1}"#, "cost", ""),
    ("cancel", r#"{"reservation": ""}"#, "reservation", ""),
];

#[track_caller]
fn is_problem(answer: &Answer, status: u16, field: &str, words: &str, of: &str) {
    assert_eq!(answer.status, status, "{of}: {answer:?}");
    assert_eq!(answer.field("content-type"), Some("application/problem+json"), "{of}");
    assert_eq!(answer.field("cache-control"), Some("no-store"), "{of}");
    let problem = answer.json();
    assert_eq!(problem["field"], field, "{of}: {problem}");
    assert_eq!(problem["status"], status, "{of}");
    assert_eq!(problem["type"], "about:blank", "{of}");
    assert!(!problem["title"].as_str().unwrap().is_empty(), "{of}");
    assert!(problem["detail"].as_str().unwrap().contains(words), "{of}: {problem}");
}

#[test]
fn bad_heads_are_told_what_is_wrong() {
    let served = serve(FILE);
    for (request, status, field, words) in BAD {
        let mut client = served.client();
        client.send(request.as_bytes());
        let answer = client.answer();
        is_problem(&answer, *status, field, words, request);
        assert_eq!(answer.field("allow").is_some(), *status == 405, "{request}");
    }
}

#[test]
fn bad_bodies_are_told_what_is_wrong() {
    let served = serve(FILE);
    let mut client = served.client();
    for (op, body, field, words) in BAD_BODIES {
        let answer = client.post(&format!("/v1/{op}"), body);
        is_problem(&answer, 400, field, words, body);
    }
    let answer = client.post("/v1/peek", r#"{"attributes": {"user": "1"}}"#);
    assert_eq!(
        answer.json()["limits"][0]["remaining"],
        3,
        "nothing was charged, and the connection goes on"
    );
}

#[test]
fn a_head_request_is_refused_without_a_body() {
    let served = serve(FILE);
    let mut client = served.client();
    client.send(b"HEAD /v1/check HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut text = String::new();
    client.0.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 405 "), "{text}");
    assert!(text.contains("allow: POST\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}

#[test]
fn the_caps_of_a_body_are_exact() {
    let served = serve(FILE);
    let mut client = served.client();
    let attributes = |count: usize| {
        let list: Vec<_> = (0..count).map(|n| format!(r#""a{n}": "x""#)).collect();
        format!(r#"{{"attributes": {{{}}}}}"#, list.join(","))
    };
    let named = |bytes: usize| format!(r#"{{"attributes": {{"{}": "x"}}}}"#, "n".repeat(bytes));
    let valued = |bytes: usize| format!(r#"{{"attributes": {{"a": "{}"}}}}"#, "v".repeat(bytes));
    let padded = |bytes: usize| format!("{{{}}}", " ".repeat(bytes - 2));
    for (good, bad, status) in [
        (attributes(64), attributes(65), 400),
        (named(128), named(129), 400),
        (valued(4096), valued(4097), 400),
        (padded(65_536), padded(65_537), 413),
    ] {
        assert_eq!(client.post("/v1/check", &good).status, 200, "{good:.80}");
        assert_eq!(served.post("/v1/check", &bad).status, status, "{bad:.80}");
    }
}

#[test]
fn content_type_is_read_as_people_write_it() {
    let served = serve(FILE);
    for value in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json ;x=y",
        "application/json;",
    ] {
        let mut client = served.client();
        let request = post("/v1/check", "{}").replace("application/json", value);
        client.send(request.as_bytes());
        assert_eq!(client.answer().status, 200, "{value}");
    }
}

#[test]
fn a_body_without_a_length_is_cut_off_at_the_cap() {
    let served = serve(FILE);
    let head = "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
        transfer-encoding: chunked\r\n\r\n";
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(4096));
    let mut client = served.client();
    client.send(head.as_bytes());
    for _ in 0..15 {
        client.send(chunk.as_bytes());
    }
    client.send(b"2\r\n{}\r\n0\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    let mut client = served.client();
    client.send(head.as_bytes());
    for _ in 0..40 {
        client.send(chunk.as_bytes());
    }
    let answer = client.answer();
    is_problem(&answer, 413, "body", "65536", "chunks");
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(client.is_ended());
}

#[test]
fn what_is_not_http_is_closed() {
    let served = serve(FILE);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"EHLO example.org\r\n",
        b"*1\r\n$4\r\nPING\r\n",
    ] {
        let mut client = served.client();
        client.send(bytes);
        assert_eq!(client.answer().status, 400, "{bytes:?}");
        assert!(client.is_ended());
    }
}

#[test]
fn a_client_that_expects_to_be_told_to_continue_is() {
    let served = serve(FILE);
    let mut client = served.client();
    client.send(
        b"POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
          content-length: 2\r\n\r\n",
    );
    assert_eq!(client.answer().status, 100);
    client.send(b"{}");
    assert_eq!(client.answer().status, 200);
}
