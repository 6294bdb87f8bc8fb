//! Encodes decisions as protobuf and as JSON: both must agree, and prost must decode the protobuf.

#[path = "../../../../tests/it/grpc/response.rs"]
#[expect(dead_code, reason = "the integration tests use the rest")]
pub(in crate::front::grpc) mod response;

use super::*;
use crate::Node;
use crate::front::grpc::{
    CallContext, RateLimitService, messages::*, writer::json as json_writer,
    writer::proto::ProtoWriter,
};
use prost::Message;
use response::{Kind, RateLimitResponse, Struct};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate::engine::GateSetup;
use tollgate_policy::envoy::{ConfigOptions, Configs};

const POLICY: &[u8] = b"
limits:
  - {name: per-user, key: [descriptor.user], rate: 3/365d, algorithm: fixed-window}
  - {name: paths, match: {descriptor.path: '/api/*'}, rate: 100/h, algorithm: gcra}
  - {name: secret, key: [descriptor.pin], rate: 1/365d, algorithm: fixed-window, disclose: false}
";
const FILE: &[u8] = b"
domain: edge
descriptors:
  - {key: open, rate_limit: {unlimited: true}}
  - key: plan
    rate_limit: {unit: day, requests_per_unit: 2}
    metadata: {name: a, deep: {yes: true, none: null, many: [1, two, 3.5]}}
  - {key: plan, value: b, quota_mode: true, metadata: {deep: {more: 1}}, rate_limit: {unit: week, requests_per_unit: 1}}
";

/// Proto3 JSON of a response.
fn json_of(response: &RateLimitResponse) -> Value {
    let code = |code: i32| if code == response::OK { "OK" } else { "OVER_LIMIT" };
    let mut out = json!({"overallCode": code(response.overall_code)});
    for one in &response.statuses {
        let mut status = json!({"code": code(one.code)});
        if let Some(limit) = &one.current_limit {
            let unit = Unit::of_number(limit.unit).map_or("", Unit::name);
            status["currentLimit"] = json!({});
            let shown = &mut status["currentLimit"];
            put(shown, "requestsPerUnit", limit.requests_per_unit.into());
            put(shown, "unit", unit.into());
            put(shown, "name", limit.name.as_str().into());
        }
        put(&mut status, "limitRemaining", one.limit_remaining.into());
        if let Some(left) = &one.duration_until_reset {
            status["durationUntilReset"] = format!("{}s", left.seconds).into();
        }
        push(&mut out, "statuses", status);
    }
    for one in &response.response_headers_to_add {
        push(&mut out, "responseHeadersToAdd", json!({"key": one.key, "value": one.value}));
    }
    let metadata = response.dynamic_metadata.as_ref().unwrap();
    out["dynamicMetadata"] = structure(metadata);
    out
}

fn put(object: &mut Value, name: &str, value: Value) {
    if value != json!(0) && value != json!("") {
        object[name] = value;
    }
}

fn push(object: &mut Value, name: &str, item: Value) {
    match &mut object[name] {
        Value::Array(items) => items.push(item),
        none => *none = json!([item]),
    }
}

fn structure(given: &Struct) -> Value {
    let mut fields = Map::new();
    for field in &given.fields {
        let value = kind(field.value.as_ref().unwrap().kind.as_ref().unwrap());
        assert!(fields.insert(field.key.clone(), value).is_none(), "{} twice", field.key);
    }
    fields.into()
}

fn kind(given: &Kind) -> Value {
    match given {
        Kind::Null(_) => Value::Null,
        Kind::Number(number) => (*number).into(),
        Kind::Text(text) => text.as_str().into(),
        Kind::Bool(value) => (*value).into(),
        Kind::Struct(given) => structure(given),
        Kind::List(list) => {
            list.values.iter().map(|value| kind(value.kind.as_ref().unwrap())).collect()
        }
    }
}

fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..Default::default() }
}

fn requests() -> Vec<RateLimitRequest> {
    let hits_addend = Some(UInt64Value { value: 2 });
    let limit = Some(RateLimitOverride { requests_per_unit: 7, unit: 3 });
    let all = [
        vec![descriptor(&[("user", "ann"), ("path", "/api/x")]), descriptor(&[("none", "")])],
        vec![RateLimitDescriptor { hits_addend, ..descriptor(&[("user", "ann")]) }],
        vec![RateLimitDescriptor { limit, ..descriptor(&[("user", "ann")]) }],
        vec![descriptor(&[("open", "x")]), descriptor(&[("pin", "1")])],
        vec![descriptor(&[("plan", "a")]), descriptor(&[("plan", "b")])],
        vec![RateLimitDescriptor { is_negative_hits: true, ..descriptor(&[("user", "ann")]) }],
        vec![descriptor(&[("user", &"long".repeat(5_000))]); 3],
    ];
    let domain = "edge".to_owned();
    all.map(|descriptors| RateLimitRequest { domain: domain.clone(), descriptors, hits_addend: 1 })
        .into()
}

#[tokio::test]
async fn protobuf_and_json_say_the_same() {
    let compiled = tollgate::engine::policy::compile(POLICY).unwrap();
    let configs = Configs::read(&[("edge.yaml", FILE)], ConfigOptions::default()).unwrap();
    let setup = GateSetup::of(&compiled).with_envoy(configs);
    let service = RateLimitService::new(Arc::new(Node::new(compiled, setup).unwrap()));
    let (mut refused, mut count) = (0, 0);
    for request in (0..4).flat_map(|_| requests()) {
        let decided = service.decide(
            &request,
            CallContext::default(),
            1_700_000_000_000_000,
            |it, header_lines, _| {
                let mut proto = Vec::new();
                it.write(header_lines, &mut ProtoWriter(&mut proto));
                (proto, json_writer::object(|out| it.write(header_lines, out)), it.verdict.allowed)
            },
        );
        let (proto, mut json, allowed) = decided.await.unwrap();
        let response = RateLimitResponse::decode(&proto[..]).unwrap();
        assert_eq!(response.encode_to_vec(), proto, "nothing is unknown, and all is in order");
        assert_eq!(response.overall_code == response::OK, allowed);
        let body = json.as_object_mut().unwrap().remove("rawBody");
        assert_eq!(body.is_some(), !allowed && !response.raw_body.is_empty());
        assert_eq!(json, json_of(&response), "{request:?}");
        (refused, count) = (refused + u32::from(!allowed), count + 1);
    }
    assert!(refused > 3 && refused < count - 3, "{refused} of {count}");
}
