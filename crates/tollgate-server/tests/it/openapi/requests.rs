//! A body is accepted if and only if its schema allows it.

use super::validator::errors;
use serde_json::Value;
use tollgate_server::front::http::decode::{Op, body};

fn schema(op: Op) -> &'static str {
    match op {
        Op::Check | Op::Peek => "CheckRequest",
        Op::Reserve => "ReserveRequest",
        Op::Settle => "SettleRequest",
        Op::Cancel => "CancelRequest",
        _ => unreachable!("a new operation"),
    }
}

fn long(count: usize) -> String {
    "x".repeat(count)
}

fn many(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|number| format!("\"a{number}\":\"\"")).collect();
    format!("{{\"attributes\":{{{}}}}}", all.join(","))
}

const BODIES: &[&str] = &[
    "{}",
    "[]",
    "null",
    "\"check\"",
    "1",
    r#"{"attributes":{}}"#,
    r#"{"attributes":{"user":"42","path":"/api/x"},"cost":3}"#,
    r#"{"attributes":{"user":42}}"#,
    r#"{"attributes":{"user":null}}"#,
    r#"{"attributes":{"":"x"}}"#,
    r#"{"attributes":[]}"#,
    r#"{"attributes":null}"#,
    r#"{"cost":0}"#,
    r#"{"cost":18446744073709551615}"#,
    r#"{"cost":-1}"#,
    r#"{"cost":1.5}"#,
    r#"{"cost":1.0}"#,
    r#"{"cost":1e3}"#,
    r#"{"cost":18446744073709551616}"#,
    r#"{"cost":"1"}"#,
    r#"{"cost":null}"#,
    r#"{"cost":true}"#,
    r#"{"reservation":"a"}"#,
    r#"{"reservation":"a","cost":4294967295}"#,
    r#"{"reservation":"a","cost":-1}"#,
    r#"{"reservation":"a","cost":1,"latency":0.0123456789,"outcome":"ok"}"#,
    r#"{"reservation":"a","cost":1,"latency":3600,"outcome":"overloaded"}"#,
    r#"{"reservation":"a","cost":1,"latency":3601}"#,
    r#"{"reservation":"a","cost":1,"latency":-0.1}"#,
    r#"{"reservation":"a","cost":1,"latency":"1s"}"#,
    r#"{"reservation":"a","cost":1,"outcome":"late"}"#,
    r#"{"reservation":"a","latency":1}"#,
    r#"{"reservation":""}"#,
    r#"{"reservation":"","cost":1}"#,
    r#"{"reservation":7,"cost":1}"#,
    r#"{"attributes":{},"reservation":"a"}"#,
    r#"{"attribute":{}}"#,
    r#"{"time":1}"#,
    r#"{"op":"check"}"#,
];

/// Separated by commas, since one value contains a space and one ends with a space.
const TTLS: &str = "1ms,0ms,3600000ms,3600001ms,2999999ms,3599999ms,30s,3600s,3601s,0s,1sec,\
    2secs,60m,61m,1min,59mins,1h,1hour,1hours,2h,007s,0h,1d,1w,1,s,1 s,1.5s,-1s,,1S,1s ";

fn bodies() -> Vec<String> {
    let mut all: Vec<String> = BODIES.iter().copied().map(String::from).collect();
    all.extend(TTLS.split(',').map(|ttl| format!("{{\"ttl\":\"{ttl}\"}}")));
    for length in [128, 129] {
        all.push(format!("{{\"attributes\":{{\"{}\":\"\"}}}}", long(length)));
    }
    for length in [4096, 4097] {
        all.push(format!("{{\"attributes\":{{\"a\":\"{}\"}}}}", long(length)));
    }
    for length in [512, 513] {
        all.push(format!("{{\"reservation\":\"{}\"}}", long(length)));
    }
    all.extend([many(64), many(65)]);
    all
}

#[test]
fn a_body_is_read_exactly_when_its_schema_allows_it() {
    let bodies = bodies();
    let calls: Vec<(Op, &String)> =
        Op::ALL.iter().flat_map(|op| bodies.iter().map(move |body| (*op, body))).collect();
    let values: Vec<(&str, Value)> =
        calls.iter().map(|(op, text)| (schema(*op), text.parse().unwrap())).collect();
    let mut accepted = 0;
    for ((op, text), errors) in calls.iter().zip(errors(&values)) {
        let read = body(text.as_bytes(), *op);
        assert_eq!(read.is_ok(), errors.is_empty(), "{op:?} {text}\n{read:?}\n{errors:?}");
        accepted += usize::from(read.is_ok());
    }
    assert!(accepted > 30 && accepted < calls.len() - 100, "{accepted} of {}", calls.len());
}

#[test]
fn an_address_has_the_form_of_one() {
    let request = |ip: &str| ("CheckRequest", serde_json::json!({"attributes": {"ip": ip}}));
    let values = ["203.0.113.7", "2001:db8::1", "", "here", "1.2.3", "1.2.3.4:80"].map(request);
    let found: Vec<bool> = errors(&values).iter().map(|errors| errors.is_empty()).collect();
    assert_eq!(found, [true, true, true, false, false, false]);
}
