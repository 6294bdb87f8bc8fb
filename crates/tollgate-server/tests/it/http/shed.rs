//! Shedders at the check API: slots of checks and reservations.

use super::serve;

const FLEET: &str =
    "shed: {fleet: {capacity: 1, assume: 1h}}\nlimits: [{name: a, key: [user], rate: 9/min}]";

#[test]
fn a_check_takes_a_slot_and_is_shed_without_one() {
    let served = serve(FLEET);
    let check = || served.post("/v1/check", r#"{"attributes": {"user": "ann"}}"#);
    assert_eq!(check().status, 200);
    let shed = check();
    assert_eq!(shed.status, 503);
    assert_eq!(shed.field("x-tollgate-source"), Some("shed"));
    let wait_s: u64 = shed.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait_s), "{wait_s}");
    let json = shed.json();
    assert_eq!((json["allowed"].as_bool(), json["source"].as_str()), (Some(false), Some("shed")));
    assert_eq!(json["limits"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["limits"][0]["allowed"], true);
    assert_eq!(json["limits"][0]["remaining"], 8, "nothing was taken");
}

#[test]
fn a_reservation_carries_its_slots_and_settle_reports() {
    let served = serve(
        "shed: {fleet: {capacity: 2}, adaptive: {min: 1, max: 1}}\nlimits: [{name: a, key: [user], rate: 9/min}]",
    );
    let reserve = || served.post("/v1/reserve", r#"{"attributes": {"user": "ann"}, "ttl": "1m"}"#);
    let end = |op: &str, body: String| served.post(&format!("/v1/{op}"), &body);
    let first = reserve().json();
    assert_eq!(first["allowed"], true, "{first}");
    // The node has one slot: this request waits, is shed, and its reservation is cancelled.
    let shed = reserve();
    assert_eq!((shed.status, shed.field("x-tollgate-source")), (503, Some("shed")));
    assert!(shed.json().get("reservation").is_none(), "{}", shed.body);
    let id = first["reservation"].as_str().unwrap();
    for body in [
        format!(r#"{{"reservation": "{id}", "cost": 1, "latency": -1}}"#),
        format!(r#"{{"reservation": "{id}", "cost": 1, "latency": "1s"}}"#),
        format!(r#"{{"reservation": "{id}", "cost": 1, "outcome": "late"}}"#),
        format!(r#"{{"reservation": "{id}", "outcome": "ok"}}"#),
    ] {
        assert_eq!(end("settle", body.clone()).status, 400, "{body}");
    }
    let body = format!(r#"{{"reservation": "{id}", "outcome": "ok"}}"#);
    assert_eq!(end("cancel", body).status, 400, "a cancel reports nothing");
    let report = format!(
        r#"{{"reservation": "{id}", "cost": 2, "latency": 0.0123456789, "outcome": "ok"}}"#
    );
    let settled = end("settle", report.clone());
    assert_eq!(settled.status, 200, "{}", settled.body);
    let rows = settled.json()["limits"].as_array().unwrap().len();
    assert_eq!(rows, 1, "slots are no limits: {}", settled.body);
    assert_eq!(end("settle", report).status, 200);
    let next = reserve().json();
    assert_eq!(next["allowed"], true, "the slot is free: {next}");
    assert_eq!(next["limits"][0]["remaining"], 6, "the shed request was refunded: {next}");
    let id = next["reservation"].as_str().unwrap();
    assert_eq!(end("cancel", format!(r#"{{"reservation": "{id}"}}"#)).status, 200);
    assert_eq!(reserve().status, 200);
}

/// A trusted peer may name any class, as at the gateway and in forward-auth.
#[test]
fn only_a_trusted_caller_raises_the_class_of_a_check() {
    const CLASSES: &str =
        "classes: [{name: critical, match: {path: /pay}}, {name: batch, default: true}]
shed: {fleet: {capacity: 2, reserve: {critical: 100%}, assume: 1h}, lower_by: class}
limits: [{name: a, rate: 9/min}]";
    for (trusted, raised) in [("[127.0.0.0/8]", 200), ("[192.0.2.0/24]", 503)] {
        let served = serve(&format!("trusted_proxies: {trusted}\n{CLASSES}"));
        let check = |attributes: &str| {
            served.post("/v1/check", &format!(r#"{{"attributes": {{{attributes}}}}}"#)).status
        };
        assert_eq!(check(r#""path": "/x""#), 503, "batch has no share");
        assert_eq!(check(r#""path": "/x", "class": "critical""#), raised, "{trusted}");
        assert_eq!(check(r#""path": "/pay", "class": "batch""#), 503, "{trusted}");
        assert_eq!(check(r#""path": "/pay", "class": "other""#), 200, "{trusted}");
    }
}
