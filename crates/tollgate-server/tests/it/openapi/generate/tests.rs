use super::answer::{Problem, Source, Verdict};
use super::request::{CancelRequest, CheckRequest, ReserveRequest, SettleRequest};
use super::*;
use serde_json::from_value;
use tollgate_server::front::http::decode::{Op, body};

fn operation(op: Op) -> Value {
    document()["paths"][format!("/v1/{}", op.as_str())]["post"].clone()
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, document: &Value, found: &mut usize) {
        if let Some(Value::String(to)) = value.get("$ref") {
            let place = to.strip_prefix('#').unwrap();
            assert!(document.pointer(place).is_some(), "{to} leads nowhere");
            *found += 1;
        }
        match value {
            Value::Object(members) => members.values().for_each(|it| walk(it, document, found)),
            Value::Array(items) => items.iter().for_each(|it| walk(it, document, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = 0;
    walk(&document, &document, &mut found);
    assert!(found > 100, "only {found} references");
}

#[test]
fn every_sample_request_is_read() {
    for op in Op::ALL {
        let content = &operation(op)["requestBody"]["content"]["application/json"];
        for (name, sample) in content["examples"].as_object().unwrap() {
            let text = sample["value"].to_string();
            body(text.as_bytes(), op).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}

#[test]
fn the_types_read_what_the_reader_reads() {
    for (op, text) in [
        (Op::Check, "{}"),
        (Op::Check, r#"{"attributes":{"user":"42"},"cost":18446744073709551615}"#),
        (Op::Check, r#"{"ttl":"1s"}"#),
        (Op::Check, r#"{"cost":-1}"#),
        (Op::Check, r#"{"cost":null}"#),
        (Op::Reserve, r#"{"ttl":"1h"}"#),
        (Op::Reserve, r#"{"reservation":"a"}"#),
        (Op::Settle, r#"{"reservation":"a","cost":4294967295}"#),
        (Op::Settle, r#"{"reservation":"a"}"#),
        (Op::Settle, r#"{"reservation":"a","cost":1,"latency":0.012,"outcome":"overloaded"}"#),
        (Op::Settle, r#"{"reservation":"a","cost":1,"outcome":"late"}"#),
        (Op::Cancel, r#"{"reservation":"a"}"#),
        (Op::Cancel, r#"{"reservation":"a","cost":1}"#),
        (Op::Cancel, "{}"),
    ] {
        let value: Value = text.parse().unwrap();
        let typed = match op {
            Op::Check | Op::Peek => from_value::<CheckRequest>(value).map(drop),
            Op::Reserve => from_value::<ReserveRequest>(value).map(drop),
            Op::Settle => from_value::<SettleRequest>(value).map(drop),
            _ => from_value::<CancelRequest>(value).map(drop),
        };
        assert_eq!(typed.is_ok(), body(text.as_bytes(), op).is_ok(), "{op:?} {text}");
    }
}

#[test]
fn samples_of_answers_are_of_their_types() {
    for op in [Op::Check, Op::Peek, Op::Reserve] {
        from_value::<Verdict>(examples::admitted(op)).unwrap();
    }
    from_value::<Verdict>(examples::refused()).unwrap();
    from_value::<Problem>(examples::problem(Op::Check, 400)).unwrap();
}

#[test]
fn every_source_is_described() {
    use tollgate::engine::Source as Real;
    for source in [
        Real::Store,
        Real::Memory,
        Real::Lease,
        Real::DenyCache,
        Real::FailOpen,
        Real::FailClosed,
        Real::LocalFallback,
        Real::Shadow,
        Real::Blocked,
        Real::Shed,
        Real::None,
    ] {
        from_value::<Source>(source.as_str().into()).unwrap();
    }
}

#[test]
fn each_call_lists_its_statuses() {
    for op in Op::ALL {
        let responses = operation(op)["responses"].clone();
        let statuses: Vec<&String> = responses.as_object().unwrap().keys().collect();
        let expected = match op {
            Op::Check | Op::Peek | Op::Reserve => "200 400 403 408 413 415 429 503",
            _ => "200 400 403 404 408 409 413 415 503",
        };
        assert_eq!(statuses, expected.split(' ').collect::<Vec<_>>(), "{op:?}");
    }
}

#[test]
fn every_field_of_every_profile_is_described() {
    let headers = operation(Op::Check)["responses"]["429"]["headers"].clone();
    for name in ["RateLimit", "X-RateLimit-Scope", "Retry-After", "X-Tollgate-Source"] {
        assert!(headers.get(name).is_some(), "{name}");
    }
    for (name, field) in fields::components() {
        assert_ne!(field["description"], "Sent if the policy asks for it.", "describe {name}");
    }
}
