//! Answers: status, headers and body.

use super::*;
use crate::exposition::Page;
use serde_json::json;
use tollgate_observe::metrics::{ExpositionFormat, MetricsSnapshot};

const FILE: &str = "
limits:
  - {name: per-user, key: [user], rate: 2/min, algorithm: fixed-window}
  - {name: watched, key: [user], rate: 1/min, algorithm: fixed-window, mode: shadow}
";

#[test]
fn an_admission_says_what_is_left() {
    let served = serve("limits: [{name: per-user, key: [user], rate: 100/h, algorithm: gcra}]");
    let answer = served.post("/v1/check", r#"{"attributes": {"user": "42"}, "cost": 1}"#);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert_eq!(answer.field("ratelimit-policy"), Some(r#""per-user";q=100;w=3600"#));
    assert_eq!(answer.field("ratelimit"), Some(r#""per-user";r=99;t=36"#));
    assert_eq!(answer.field("x-ratelimit-limit"), Some("100"));
    assert_eq!(answer.field("x-ratelimit-remaining"), Some("99"));
    assert!(answer.field("x-ratelimit-reset").is_some() && answer.field("date").is_some());
    assert_eq!(answer.field("retry-after"), None);
    assert_eq!(answer.field("x-tollgate-source"), None, "memory is the usual source");
    let row = json!({"name": "per-user", "allowed": true, "limit": 100, "remaining": 99, "reset_after": 36.0,
        "retry_after": 0.0, "mode": "enforce", "source": "memory"});
    let body = json!({"allowed": true, "delay": 0.0, "retry_after": 0.0, "source": "memory", "limits": [row]});
    assert_eq!(answer.json(), body);
}

#[test]
fn a_refusal_is_an_answer_with_a_wait() {
    let served = serve("limits: [{name: slow, rate: 1/h, algorithm: gcra}]");
    assert_eq!(served.post("/v1/check", "{}").status, 200);
    let answer = served.post("/v1/check", "{}");
    assert_eq!(answer.status, 429);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert_eq!(answer.field("retry-after"), Some("3600"));
    assert!(answer.field("ratelimit").unwrap().starts_with(r#""slow";r=0;t="#));
    assert_eq!(answer.json()["allowed"], false);
    let retry_after = answer.json()["retry_after"].as_f64().unwrap();
    assert!((3500.0..=3600.0).contains(&retry_after), "{retry_after}");
}

#[test]
fn no_wait_helps_a_cost_that_never_fits() {
    let served = serve("limits: [{name: small, rate: 5/h, algorithm: gcra}]");
    let answer = served.post("/v1/check", r#"{"cost": 6}"#);
    assert_eq!((answer.status, answer.field("retry-after")), (429, None));
    assert_eq!(answer.json()["retry_after"], Value::Null);
    assert_eq!(served.post("/v1/check", r#"{"cost": 18446744073709551615}"#).status, 429);
    assert_eq!(served.post("/v1/check", r#"{"cost": 5}"#).status, 200);
}

#[test]
fn a_peek_takes_nothing() {
    let served = serve("limits: [{name: one, rate: 1/h, algorithm: gcra}]");
    for _ in 0..3 {
        let answer = served.post("/v1/peek", "{}");
        assert_eq!((answer.status, &answer.json()["limits"][0]["remaining"]), (200, &json!(1)));
    }
    assert_eq!(served.post("/v1/check", "{}").status, 200);
    assert_eq!(served.post("/v1/peek", "{}").status, 429);
}

#[test]
fn an_unusual_source_has_a_field() {
    let served = serve(FILE);
    let body = r#"{"attributes": {"user": "7"}}"#;
    assert_eq!(served.post("/v1/check", body).field("x-tollgate-source"), None);
    let shadowed = served.post("/v1/check", body);
    assert_eq!(shadowed.status, 200);
    assert_eq!(shadowed.field("x-tollgate-source"), Some("shadow"));
    assert_eq!(shadowed.json()["source"], "shadow");
    assert!(!shadowed.field("ratelimit").unwrap().contains("watched"));
    let unlimited = served.post("/v1/check", "{}");
    assert_eq!(unlimited.field("x-tollgate-source"), None);
    assert_eq!(unlimited.json()["source"], "none");
    assert_eq!(unlimited.json()["limits"], json!([]));
}

#[test]
fn the_fields_are_those_that_the_file_names() {
    let names = |headers: &str| -> Vec<String> {
        let file = format!("headers: {headers}\nlimits: [{{name: a, rate: 0/h}}]");
        let answer = serve(&file).post("/v1/check", "{}");
        let usual = ["content-type", "cache-control", "content-length", "date"];
        let names = answer.fields.into_iter().map(|field| field.0);
        names.filter(|name| !usual.contains(&name.as_str())).collect()
    };
    assert_eq!(names("none"), Vec::<String>::new());
    assert_eq!(names("[draft-7]"), ["ratelimit-policy", "ratelimit"]);
    assert!(names("[draft-6]").contains(&"ratelimit-limit".to_owned()));
    assert!(names("[github]").contains(&"x-ratelimit-resource".to_owned()));
    assert!(names("[discord]").contains(&"x-ratelimit-bucket".to_owned()));
    assert!(names("[discord]").contains(&"x-ratelimit-scope".to_owned()));
}

#[test]
fn attributes_are_put_into_their_usual_form() {
    let file = "limits: [{name: a, key: [ip, method, path, host], rate: 1/h, algorithm: gcra}]";
    let served = serve(file);
    let first = r#"{"attributes": {"ip": "192.0.2.1", "method": "get", "path": "/a/b/../%7Ec", "host": "EXAMPLE.org"}}"#;
    let same = r#"{"attributes": {"ip": "::ffff:192.0.2.1", "method": "GET", "path": "/a/~c", "host": "example.org"}}"#;
    assert_eq!(served.post("/v1/check", first).status, 200);
    assert_eq!(served.post("/v1/check", same).status, 429);
}

#[test]
fn every_request_is_counted_by_what_became_of_it() {
    let served = serve("limits: [{name: one, rate: 1/h, algorithm: gcra}]");
    let mut client = served.client();
    for (path, body) in
        [("/v1/check", "{}"), ("/v1/check", "{}"), ("/v1/check", "{"), ("/v1/nothing", "{}")]
    {
        client.post(path, body);
    }
    let text =
        served.node.metrics.exposition(&MetricsSnapshot::default(), ExpositionFormat::Prometheus);
    let page = Page::prometheus(&text).unwrap();
    for (outcome, count) in [("admitted", 1.0), ("refused", 1.0), ("invalid", 2.0), ("error", 0.0)]
    {
        let labels = [("front", "http"), ("outcome", outcome)];
        assert_eq!(page.value("tollgate_requests_total", &labels), Some(count), "{outcome}");
    }
    let decisions = page.value("tollgate_decision_seconds_count", &[("front", "http")]);
    assert_eq!(decisions, Some(2.0), "what cannot be read is not decided");
    assert_eq!(page.value("tollgate_connections_open", &[("front", "http")]), Some(1.0));
}

/// The cost of the matching entry, times the request's own cost; also in shadow mode.
#[test]
fn costs_by_match_share_one_budget() {
    let served = serve(
        "limits: [{name: units, key: {first_of: [user, ip]}, rate: 100/h, algorithm: fixed-window, cost: [{match: {path: '/embed/**'}, units: 10}]}, \
         {name: watched, rate: 15/h, algorithm: fixed-window, mode: shadow, cost: [{match: {path: '/embed/**'}, units: 10}]}]",
    );
    let ask = |op: &str, path: &str, cost: u64| {
        let body =
            format!(r#"{{"attributes": {{"user": "1", "path": "{path}"}}, "cost": {cost}}}"#);
        let answer = served.post(op, &body).json();
        let row = |place: usize| {
            (
                answer["limits"][place]["remaining"].clone(),
                answer["limits"][place]["allowed"].clone(),
            )
        };
        (row(0), row(1))
    };
    assert_eq!(ask("/v1/check", "/read", 1), ((json!(99), json!(true)), (json!(14), json!(true))));
    assert_eq!(ask("/v1/check", "/embed", 1), ((json!(89), json!(true)), (json!(4), json!(true))));
    assert_eq!(
        ask("/v1/peek", "/embed/x", 9),
        ((json!(89), json!(false)), (json!(4), json!(false)))
    );
    assert_eq!(ask("/v1/check", "/embed", 8), ((json!(9), json!(true)), (json!(4), json!(false))));
    // Estimates and settlements are in units of the endpoint.
    let served = serve(
        "limits: [{name: units, rate: 100/h, algorithm: fixed-window, cost: [{match: {path: /embed}, units: 10}]}]",
    );
    let reserved =
        served.post("/v1/reserve", r#"{"attributes": {"path": "/embed"}, "cost": 4}"#).json();
    assert_eq!(reserved["limits"][0]["remaining"], 60);
    let settle = format!(r#"{{"reservation": {}, "cost": 3}}"#, reserved["reservation"]);
    assert_eq!(served.post("/v1/settle", &settle).json()["limits"][0]["remaining"], 70);
}
