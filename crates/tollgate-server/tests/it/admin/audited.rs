//! Each change has a line in the audit log. A change whose line cannot be written is not made.

use super::{Desk, POLICY};
use serde_json::{Value, json};
use std::path::Path;
use tollgate_observe::audit::AuditLog;

#[test]
fn each_change_is_recorded_with_what_was_there() {
    let desk = Desk::audited("lines");
    desk.check(&[("user", "42")]);
    desk.call("PUT", "/v1/limits/per-user/mode", r#"{"mode": "off"}"#);
    desk.call("DELETE", "/v1/limits/per-user/mode", "");
    desk.call("POST", "/v1/block", r#"{"attributes": {"user": "42"}, "for": "10m"}"#);
    desk.call("POST", "/v1/unblock", r#"{"attributes": {"user": "42"}}"#);
    desk.call("POST", "/v1/reset", r#"{"attributes": {"user": "42"}}"#);
    desk.call("POST", "/v1/reload", "");
    let lines = desk.lines();
    let what: Vec<&str> = lines.iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(
        what,
        ["mode.set", "mode.clear", "block", "unblock", "reset", "reload", "reload.done"]
    );
    for line in &lines {
        assert_eq!(line["who"]["peer"], "192.0.2.1:5000");
        assert!(line["who"]["token"].as_str().unwrap().starts_with("sha256:"), "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        assert!(line.get("before").is_some() && line.get("after").is_some(), "{line}");
        assert_eq!(line["error"], Value::Null);
    }
    let told = |line: &Value| (line["before"].clone(), line["after"].clone());
    assert_eq!(lines[0]["target"], json!({"limit": "per-user", "scope": "node"}));
    assert_eq!(
        told(&lines[0]),
        (
            json!({"mode": "enforce", "overridden": false}),
            json!({"mode": "off", "overridden": true})
        )
    );
    assert_eq!(
        told(&lines[1]),
        (
            json!({"mode": "off", "overridden": true}),
            json!({"mode": "enforce", "overridden": false})
        )
    );
    assert_eq!(lines[2]["target"], json!({"limits": ["per-user"], "attributes": {"user": "42"}}));
    assert_eq!(lines[2]["before"][0]["remaining"], 1);
    assert_eq!(lines[2]["before"][0]["blocked_until"], Value::Null);
    assert_eq!(lines[3]["before"][0]["blocked_until"], lines[2]["after"]["blocked_until"]);
    assert_eq!(lines[3]["after"], json!({"blocked_until": null}));
    assert_eq!(
        (&lines[4]["before"][0]["remaining"], &lines[4]["after"]),
        (&json!(1), &Value::Null)
    );
    let generations = told(&lines[6]);
    assert!(generations.0["generation"].as_u64() < generations.1["generation"].as_u64());
}

#[test]
fn looking_leaves_no_line_and_neither_does_what_was_refused() {
    let desk = Desk::audited("looks");
    for (method, path, body) in [
        ("GET", "/v1/policy", ""),
        ("POST", "/v1/inspect", r#"{"attributes": {"user": "42"}}"#),
        ("POST", "/v1/reset", r#"{"attributes": {"nobody": "42"}}"#),
        ("POST", "/v1/reset", r#"{"attributes": {"user": "42"}, "limit": "nothing"}"#),
        ("POST", "/v1/block", r#"{"attributes": {"user": "42"}}"#),
        ("PUT", "/v1/limits/nothing/mode", r#"{"mode": "off"}"#),
        ("PUT", "/v1/limits/per-user/mode", r#"{"mode": "on"}"#),
    ] {
        desk.call(method, path, body);
    }
    desk.call_with("POST", "/v1/reload", &[("authorization", "Bearer guess")], "");
    assert_eq!(desk.lines(), Vec::<Value>::new());
}

#[test]
fn a_reload_that_fails_says_so() {
    let desk = Desk::audited("reload");
    *desk.control.file.lock().unwrap() = "nothing: here".into();
    desk.call("POST", "/v1/reload", "");
    let lines = desk.lines();
    assert_eq!((&lines[0]["what"], &lines[0]["error"]), (&json!("reload"), &Value::Null));
    assert_eq!(lines[1]["what"], "reload.done");
    assert!(lines[1]["error"].as_str().is_some_and(|text| text.contains("nothing")));
}

#[test]
fn an_api_key_is_recorded_as_its_hash() {
    let desk = Desk::audited("hash");
    let body = r#"{"attributes": {"api_key": "k-123"}, "for": "10m"}"#;
    assert_eq!(desk.call("POST", "/v1/block", body).status, 200);
    let line = desk.lines()[0].to_string();
    assert!(!line.contains("k-123"), "{line}");
}

#[test]
fn without_a_line_there_is_no_change() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let policy = POLICY.replace("/dev/null", "/dev/full");
    let desk = Desk::with(&policy);
    let user = [("user", "42")];
    while desk.check(&user) {}
    let generation = desk.node.gate.rules().generation();
    for (method, path, body) in [
        ("PUT", "/v1/limits/per-user/mode", r#"{"mode": "off"}"#),
        ("POST", "/v1/reset", r#"{"attributes": {"user": "42"}}"#),
        ("POST", "/v1/block", r#"{"attributes": {"user": "43"}, "for": "1h"}"#),
        ("POST", "/v1/reload", ""),
    ] {
        let answer = desk.call(method, path, body);
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.text.contains("nothing changed"), "{answer:?}");
    }
    assert!(!desk.check(&user), "neither reset nor off");
    assert!(desk.check(&[("user", "43")]), "not blocked");
    assert_eq!(desk.node.gate.rules().generation(), generation);
    let page = desk.call_with("GET", "/metrics", &[], "");
    assert!(page.text.contains("tollgate_audit_failures_total 4\n"), "{}", page.text);
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_before_anything_runs() {
    let file = tollgate_policy::compile(b"admin: {audit: {file: no/such/folder.jsonl}}").unwrap();
    let error = AuditLog::of(&file.settings, Path::new("/")).unwrap_err().to_string();
    assert!(error.contains("/no/such/folder.jsonl"), "{error}");
}
