//! Callers written for envoyproxy/ratelimit find its metadata and its health check, and no other
//! headers.

use super::*;
use crate::http::Client;
use serde_json::{Value, json};
use std::net::TcpStream;

const QUOTA: &str = "
domain: edge
descriptors:
  - key: service
    value: one
    quota_mode: true
    metadata: {name: one, where: {zone: a, rack: 1}, tags: [x]}
    rate_limit: {unit: year, requests_per_unit: 1}
  - key: service
    value: two
    quota_mode: true
    metadata: {name: two, where: {zone: b, shelf: true}, more: null}
    rate_limit: {unit: year, requests_per_unit: 2}
  - {key: service, value: free, metadata: {name: free}, rate_limit: {unlimited: true}}
  - {key: service, value: plain, rate_limit: {unit: year, requests_per_unit: 1}}
";

fn node(rest: &str) -> Node {
    let rest = format!("envoy: {{configs: edge.yml, {rest}}}");
    Node::start(&rest, &[("edge.yml", QUOTA)])
}

/// Sends one HTTP/1 request.
fn http(address: SocketAddr, method: &str, path: &str, body: &str) -> crate::http::Answer {
    let mut client = Client(TcpStream::connect(address).unwrap());
    let kind = "content-type: application/json";
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{kind}\r\ncontent-length: {length}\r\n");
    client.send(format!("{head}\r\n{body}").as_bytes());
    client.answer()
}

fn ask(node: &Node, request: &Value) -> Value {
    http(node.address(), "POST", "/json", &request.to_string()).json()
}

fn service(name: &str) -> Value {
    json!({"entries": [{"key": "service", "value": name}]})
}

fn shown(name: &str) -> Value {
    json!({"entries": [format!("service={name}")]})
}

#[test]
fn metadata_is_nested_as_the_original_nests_it() {
    let node = node("compat: strict");
    let both = json!({"domain": "edge", "descriptors": [service("one"), service("two")]});
    let metadata = &ask(&node, &both)["dynamicMetadata"];
    let expected = json!({
        "domain": "edge",
        "descriptors": [shown("one"), shown("two")],
        "metadata": {
            "name": "one",
            "where": {"zone": "a", "rack": 1.0, "shelf": true},
            "tags": ["x"],
            "more": null,
        },
        "tollgate": {"limit": "edge.service_one", "source": "memory", "allowed": true},
    });
    assert_eq!(*metadata, expected);
    let metadata = &ask(&node, &both)["dynamicMetadata"];
    let expected = json!({"name": "two", "where": {"zone": "b", "shelf": true}, "more": null});
    assert_eq!(metadata["metadata"], expected, "only the quota that is left");
    let answer = ask(&node, &both);
    assert_eq!(answer["overallCode"], "OVER_LIMIT");
    let metadata = answer["dynamicMetadata"].as_object().unwrap();
    assert_eq!(metadata["descriptors"], json!([shown("one"), shown("two")]));
    assert!(metadata.get("metadata").is_none(), "{metadata:?}");
    assert_eq!(metadata["tollgate"]["allowed"], false);
}

#[test]
fn the_request_is_in_the_metadata_of_every_answer() {
    let node = node("compat: strict");
    let limited = json!({
        "entries": [{"key": "service", "value": "plain"}, {"key": "empty", "value": ""}],
        "limit": {"requestsPerUnit": 7, "unit": "HOUR"},
        "hitsAddend": "2",
    });
    let descriptors = [service("none"), service("free"), limited];
    let request = json!({"domain": "edge", "descriptors": descriptors, "hitsAddend": 5});
    let metadata = &ask(&node, &request)["dynamicMetadata"];
    let limited = json!({
        "entries": ["service=plain", "empty="],
        "limit": "requests_per_unit:7 unit:HOUR",
        "hitsAddend": 2.0,
    });
    assert_eq!(metadata["descriptors"], json!([shown("none"), shown("free"), limited]));
    assert_eq!(metadata["hitsAddend"], 5.0);
    assert!(metadata.get("metadata").is_none(), "the unlimited one hands on nothing");
    let request = json!({"domain": "nowhere", "descriptors": [service("one")]});
    let expected = json!({"domain": "nowhere", "descriptors": [shown("one")]});
    assert_eq!(ask(&node, &request)["dynamicMetadata"], expected, "no limit, no `tollgate`");
}

#[test]
fn metadata_can_be_turned_off() {
    let node = node("dynamic_metadata: false");
    let request = json!({"domain": "edge", "descriptors": [service("one")]});
    let answer = ask(&node, &request);
    assert_eq!((&answer["overallCode"], answer.get("dynamicMetadata")), (&json!("OK"), None));
}

#[test]
fn clients_do_not_hear_of_requests_without_a_limit() {
    let node = node("compat: envoy");
    for (domain, name) in [("edge", "none"), ("edge", "free"), ("nowhere", "one")] {
        let response = node.ask(domain, vec![descriptor(&[("service", name)])]);
        assert_eq!(response.overall_code, OK);
        assert_eq!(response.response_headers_to_add, [], "{domain} {name}");
    }
}

#[test]
fn the_body_has_the_status_that_envoy_answers_with() {
    for (rest, status) in [("compat: envoy", 429), ("rate_limited_status: 503", 503)] {
        let node = node(rest);
        let plain = || descriptor(&[("service", "plain")]);
        assert_eq!(node.ask("edge", vec![plain()]).overall_code, OK);
        let response = node.ask("edge", vec![plain()]);
        assert_eq!(response.overall_code, OVER_LIMIT);
        let body: Value = serde_json::from_slice(&response.raw_body).unwrap();
        assert_eq!((&body["status"], &body["title"]), (&json!(status), &json!("Quota Exceeded")));
    }
}

#[test]
fn the_health_check_answers_as_the_original_does() {
    let node = node("compat: envoy");
    let ports = [node.address(), node.running.address(Front::Http).unwrap()];
    for port in ports {
        let answer = http(port, "GET", "/healthcheck", "");
        assert_eq!((answer.status, &*answer.body), (200, "OK"));
    }
    node.running.node().health.fail("draining", "the process is stopping");
    for port in ports {
        let answer = http(port, "GET", "/healthcheck", "");
        assert_eq!((answer.status, &*answer.body), (500, ""));
    }
}
