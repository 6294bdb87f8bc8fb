//! Invalid calls get an answer that explains the error.

use super::{Desk, TOKEN};

#[test]
fn every_mistake_has_its_status_and_names_its_field() {
    let desk = Desk::new();
    for (method, path, body, status, field) in [
        ("GET", "/index", "", 404, "path"),
        ("GET", "/v1/nothing", "", 404, "path"),
        ("POST", "/healthz", "", 405, "method"),
        ("GET", "/v1/reset", "", 405, "method"),
        ("POST", "/v1/limits/a/mode", "", 405, "method"),
        ("PUT", "/v1/limits/%zz/mode", r#"{"mode": "off"}"#, 400, "name"),
        ("POST", "/v1/inspect", "[", 400, "body"),
        ("POST", "/v1/inspect", r#"{"cost": 1}"#, 400, "cost"),
        ("POST", "/v1/inspect", r#"{"attributes": {"ip": "here"}}"#, 400, "attributes.ip"),
        ("POST", "/v1/inspect", r#"{"attributes": {"user": 1}}"#, 400, "attributes.user"),
        ("POST", "/v1/block", r#"{"attributes": {"user": "1"}}"#, 400, "for"),
        ("PUT", "/v1/limits/per-user/mode", r#"{"mode": "on"}"#, 400, "mode"),
        ("POST", "/v1/reload", r#"{"file": "x"}"#, 400, "file"),
    ] {
        let answer = desk.call(method, path, body);
        assert_eq!(answer.status, status, "{method} {path} {body}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let problem = answer.json();
        assert_eq!(
            (problem["status"].as_u64(), problem["field"].as_str()),
            (Some(status.into()), Some(field))
        );
        assert!(problem["detail"].as_str().is_some_and(|text| !text.is_empty()), "{answer:?}");
        assert_eq!(answer.headers.contains_key("allow"), status == 405);
    }
}

#[test]
fn a_body_is_json_and_said_to_be() {
    let desk = Desk::new();
    let bearer = format!("Bearer {TOKEN}");
    for (media, status) in [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonp", 415),
    ] {
        let fields = [("authorization", &*bearer), ("content-type", media)];
        let answer = desk.call_with("POST", "/v1/inspect", &fields, "{}");
        assert_eq!(answer.status, status, "{media}");
        if status == 415 {
            assert!(answer.text.contains("curl --json"), "{answer:?}");
        }
    }
    let large = format!("{{\"attributes\": {{}}{}}}", " ".repeat(64 * 1024));
    assert_eq!(desk.call("POST", "/v1/inspect", &large).status, 413);
}
