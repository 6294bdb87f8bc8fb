//! Reserve, settle, cancel.

use super::*;
use serde_json::json;

const FILE: &str = "limits: [{name: a, rate: 10/h, algorithm: fixed-window}]";

fn remaining(served: &Served) -> Value {
    served.post("/v1/peek", "{}").json()["limits"][0]["remaining"].clone()
}

fn reserve(served: &Served, body: &str) -> (String, Value) {
    let answer = served.post("/v1/reserve", body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let json = answer.json();
    (json["reservation"].as_str().unwrap().to_owned(), json)
}

#[test]
fn a_settled_reservation_costs_what_it_really_cost() {
    let served = serve(FILE);
    let (id, json) = reserve(&served, r#"{"cost": 6, "ttl": "90s"}"#);
    assert_eq!(json["expires_after"], 90.0);
    assert_eq!((&json["allowed"], &json["limits"][0]["remaining"]), (&json!(true), &json!(4)));
    assert_eq!(remaining(&served), 4);
    let settle = json!({"reservation": id, "cost": 2}).to_string();
    let first = served.post("/v1/settle", &settle);
    assert_eq!((first.status, first.field("cache-control")), (200, Some("no-store")));
    let settled = first.json();
    assert_eq!((&settled["reservation"], &settled["charged"]), (&json!(id), &json!(2)));
    assert_eq!(settled["limits"][0]["remaining"], 8);
    assert_eq!(remaining(&served), 8);
    let again = served.post("/v1/settle", &settle);
    assert_eq!(
        (again.status, again.body),
        (200, first.body),
        "the same call again has the same answer"
    );
    let other = json!({"reservation": id, "cost": 3}).to_string();
    let other = served.post("/v1/settle", &other);
    assert_eq!((other.status, &other.json()["field"]), (409, &json!("reservation")));
    let cancel = served.post("/v1/cancel", &json!({"reservation": id}).to_string());
    assert_eq!(cancel.status, 409);
    assert_eq!(remaining(&served), 8);
}

#[test]
fn a_cancelled_reservation_costs_nothing() {
    let served = serve(FILE);
    let (id, json) = reserve(&served, r#"{"cost": 6}"#);
    assert_eq!(json["expires_after"], 30.0);
    let cancel = json!({"reservation": id}).to_string();
    let answer = served.post("/v1/cancel", &cancel);
    assert_eq!((answer.status, &answer.json()["charged"]), (200, &json!(0)));
    assert_eq!(served.post("/v1/cancel", &cancel).status, 200);
    assert_eq!(remaining(&served), 10);
}

#[test]
fn a_refused_reservation_is_none() {
    let served = serve(FILE);
    let answer = served.post("/v1/reserve", r#"{"cost": 11}"#);
    assert_eq!(answer.status, 429);
    assert_eq!(
        (answer.json().get("reservation"), answer.json().get("expires_after")),
        (None, None)
    );
}

#[test]
fn an_unknown_reservation_is_not_found() {
    let served = serve(FILE);
    for (op, body) in [
        ("settle", r#"{"reservation": "nobody", "cost": 1}"#),
        ("cancel", r#"{"reservation": "nobody"}"#),
    ] {
        let answer = served.post(&format!("/v1/{op}"), body);
        assert_eq!((answer.status, &answer.json()["field"]), (404, &json!("reservation")), "{op}");
    }
}

#[test]
fn names_are_unlike_each_other_and_need_no_escapes() {
    let served = serve("limits: []");
    let names: std::collections::HashSet<_> = (0..100).map(|_| reserve(&served, "{}").0).collect();
    assert_eq!(names.len(), 100);
    for name in &names {
        assert_eq!(name.len(), 32, "192 bits");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')),
            "{name}"
        );
    }
    let characters: std::collections::HashSet<_> =
        names.iter().flat_map(|name| name.chars()).collect();
    assert_eq!(characters.len(), 64, "every character has its turn");
}
