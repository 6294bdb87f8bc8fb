//! `GET` and `POST /v1/explain`.

use super::Desk;
use serde_json::{Value, json};

const POLICY: &str = r#"
admin: {token: s3cret-token, audit: {file: /dev/null}}
trusted_proxies: [10.0.0.0/8]
client_address: {header: x-forwarded-for}
identity: {user: header.x-user-id, session: cookie.sid, tenant: jwt.org}
jwt: {keys: jwks.json, algorithms: [ES256]}
tiers: {from: plan, default: free}
limits:
  - {name: per-user, match: {path: "/api/**"}, key: [user], rate: 2/d, tiers: {pro: 9/d}}
  - {name: per-address, key: [ip], rate: 5/d, algorithm: token-bucket}
  - {name: per-session, key: [session], rate: 5/d, algorithm: fixed-window}
  - {name: per-tenant, key: [tenant], rate: 5/d, on_store_failure: closed}
  - {name: keys, match: {api_key: "sk-hunter2-*"}, rate: 5/d}
  - {name: watched, match: {path: /api/seen}, key: [user], rate: 1/d, mode: shadow}
"#;

fn limit<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let limits = answer["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["name"] == name).unwrap()
}

#[test]
fn every_limit_says_whether_it_applies_and_what_it_answers() {
    let desk = Desk::with(POLICY);
    let explain = || desk.call("GET", "/v1/explain?user=42&path=/api/x", "").json();
    for (used, allowed) in [(0, true), (1, true), (2, false)] {
        for _ in 0..2 {
            let answer = explain();
            assert_eq!(answer["allowed"], allowed);
            let own = &limit(&answer, "per-user")["decisions"][0];
            assert_eq!((&own["used"], &own["allowed"]), (&json!(used), &json!(allowed)));
            let counts = format!("{used} of 2 in this window: {} left", 2 - used);
            assert!(own["reason"].as_str().unwrap().starts_with(&counts), "{own}");
            assert_eq!(own["admits_at"].is_string(), !allowed, "{own}");
        }
        desk.check(&[("user", "42"), ("path", "/api/x")]);
    }
    let answer = explain();
    assert_eq!((&answer["status"], &answer["tier"]["name"]), (&json!(429), &json!("free")));
    let watched = limit(&answer, "watched");
    assert_eq!(watched["why_not"], "path is /api/x, not /api/seen");
    assert_eq!(watched["unmet"]["patterns"], json!(["/api/seen"]));
    assert_eq!(limit(&answer, "per-address")["why_not"], "the request lacks ip (peer)");
    assert_eq!(limit(&answer, "per-tenant")["on_store_failure"], "closed");
}

/// The limit's own wait may be longer than the block.
#[test]
fn a_block_is_not_taken_for_the_wait() {
    let desk = Desk::with(POLICY);
    for _ in 0..3 {
        desk.check(&[("user", "42"), ("path", "/api/x")]);
    }
    desk.call(
        "POST",
        "/v1/block",
        r#"{"attributes": {"user": "42"}, "limit": "per-user", "for": "1s"}"#,
    );
    let answer = desk.call("GET", "/v1/explain?user=42&path=/api/x", "").json();
    let reason = limit(&answer, "per-user")["decisions"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("the key is blocked; the request fits in "), "{reason}");
}

#[test]
fn hosts_have_one_form_in_explain_and_in_a_check() {
    let file = "admin: {token: s3cret-token, audit: {file: /dev/null}}
limits: [{name: h, match: {host: a.ex.com}, rate: 0/d}]";
    let desk = Desk::with(file);
    for host in ["a.ex.com", "A.EX.COM", "a.ex.com:80", "a.ex.com.", "a.ex.com:", "A.ex.com.:80"] {
        assert!(!desk.check(&[("host", host)]), "{host}");
        let answer = desk.call("GET", &format!("/v1/explain?host={host}"), "").json();
        assert_eq!(answer["allowed"], false, "{host}: {answer}");
    }
    assert!(desk.check(&[("host", "b.a.ex.com:80")]));
}

#[test]
fn parts_of_a_request_are_read_as_the_gateway_reads_them() {
    let desk = Desk::with(POLICY);
    let body = json!({"peer": "10.0.0.1", "attributes": {
        "header.x-forwarded-for": "192.0.2.1, 203.0.113.7, 10.0.0.2", "header.x-user-id": "42",
        "cookie.sid": "hunter2", "jwt.org": "acme", "plan": "pro", "path": "/api/x",
    }});
    let answer = desk.call("POST", "/v1/explain", &body.to_string());
    assert!(!answer.text.contains("hunter2"), "{}", answer.text);
    let answer = answer.json();
    let key = |name: &str| limit(&answer, name)["decisions"][0]["key"][0].clone();
    let part = |attribute: &str, value: &str, from: &str| json!({"attribute": attribute, "value": value, "from": from});
    assert_eq!(key("per-user"), part("user", "42", "header x-user-id"));
    let hop = "x-forwarded-for, item 2 from the right";
    assert_eq!(key("per-address"), part("ip", "203.0.113.7", hop));
    assert_eq!(key("per-tenant"), part("tenant", "acme", "claim org, given"));
    assert_eq!(key("per-session")["from"], "cookie sid");
    let own = &limit(&answer, "per-user")["decisions"][0];
    assert_eq!((&own["tier"], &own["rate"]), (&json!("pro"), &json!("9/d")));
    assert_eq!(answer["tier"]["name"], "pro");
    let stranger = body.to_string().replace("\"10.0.0.1\"", "\"192.0.2.9\"");
    let answer = desk.call("POST", "/v1/explain", &stranger).json();
    let key = &limit(&answer, "per-address")["decisions"][0]["key"][0];
    assert_eq!(key["value"], "192.0.2.9");
    assert!(key["from"].as_str().unwrap().contains("not a trusted proxy"), "{key}");
}

#[test]
fn no_secret_is_shown_nor_are_patterns_of_secrets() {
    let desk = Desk::with(POLICY);
    for query in ["api_key=sk-hunter2-1", "api_key=other-hunter2", "cookie.sid=hunter2"] {
        let answer = desk.call("GET", &format!("/v1/explain?{query}"), "");
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(!answer.text.contains("hunter2"), "{query}: {}", answer.text);
    }
}

#[test]
fn a_candidate_is_compared_and_never_enforced() {
    let desk = Desk::with(
        r#"
admin: {token: s3cret-token, audit: {file: /dev/null}}
limits:
  - {name: per-user, key: [user], rate: 3/d, candidate: {rate: 1/d, algorithm: fixed-window}}
"#,
    );
    for (n, allowed) in [true, true, true, false].into_iter().enumerate() {
        let answer = desk.call("GET", "/v1/explain?user=42", "").json();
        let own = &limit(&answer, "per-user")["decisions"][0];
        assert_eq!(own["allowed"], allowed);
        let candidate = &own["candidate"];
        assert_eq!(candidate["allowed"], n == 0, "{candidate}");
        assert_eq!((&candidate["rate"], &candidate["limit"]), (&json!("1/d"), &json!(1)));
        assert_eq!(desk.check(&[("user", "42")]), allowed);
    }
    let metrics = desk.call_with("GET", "/metrics", &[], "").text;
    for (outcome, count) in [("same", 2), ("would_refuse", 2), ("would_admit", 0)] {
        let line = format!(
            "tollgate_candidate_total{{limit=\"per-user\",outcome=\"{outcome}\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{line}");
    }
    let policy = desk.call("GET", "/v1/policy", "").json();
    assert_eq!(policy["limits"].as_array().unwrap().len(), 1, "a candidate is no limit");
    let candidate = &policy["limits"][0]["candidate"];
    assert_eq!((&candidate["would_refuse"], &candidate["keys"]), (&json!(2), &json!(1)));
    assert_eq!(candidate["algorithm"], "fixed-window");
    let peek = desk.call("POST", "/v1/peek", r#"{"attributes": {"user": "42"}}"#).json();
    assert_eq!(peek["limits"].as_array().unwrap().len(), 1);
}

#[test]
fn a_cost_is_as_large_as_in_a_check() {
    let desk = Desk::with(POLICY);
    for cost in [4_294_967_296, u64::MAX] {
        let answer = desk.call("GET", &format!("/v1/explain?user=1&path=/api/x&cost={cost}"), "");
        assert_eq!((answer.status, &answer.json()["allowed"]), (200, &json!(false)), "{cost}");
    }
    let answer = desk.call("GET", "/v1/explain?user=1&cost=18446744073709551616", "");
    assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("cost")));
}

#[test]
fn bad_descriptions_name_the_field() {
    let desk = Desk::with(POLICY);
    for (query, field) in [
        ("ip=nowhere", "ip"),
        ("peer=nowhere", "peer"),
        ("cost=-1", "cost"),
        ("at=2026-11-17T08:00:00Z", "at"),
        ("path=/a%252Fb", "path"),
        ("header.x%20y=1", "header.x y"),
        ("user=1&user=2", "user"),
    ] {
        let answer = desk.call("GET", &format!("/v1/explain?{query}"), "");
        assert_eq!((answer.status, &answer.json()["field"]), (400, &json!(field)), "{query}");
    }
    assert_eq!(desk.call("PUT", "/v1/explain", "{}").status, 405);
    assert_eq!(desk.call_with("GET", "/v1/explain?user=1", &[], "").status, 401);
}
