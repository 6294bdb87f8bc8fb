//! `POST /json`: the same call in the JSON of proto3, as envoyproxy/ratelimit has it beside gRPC.

mod read;

use super::service::{Caller, Service};
use super::wire::{self, Kind, RateLimitResponse};
use crate::front::{media::is_json, page::sent_by_page};
use crate::net::{Body, BodyError, Request, Response, collect};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;
use tollgate_policy::envoy::Unit;

pub(super) const PATH: &str = "/json";

/// Answers one request: 200, 429 over a limit, 400 if malformed, 403 or 415 if a web page could
/// have sent it.
pub(super) async fn answer(service: &Service, request: Request, body_within: Duration) -> Response {
    if request.method() != Method::POST {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use POST\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    if sent_by_page(request.headers()) {
        return plain(
            StatusCode::FORBIDDEN,
            "this is for programs, not for web pages: leave out Origin\n",
        );
    }
    if !is_json(request.headers()) {
        let text = "send JSON with Content-Type: application/json, as curl --json does\n";
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    }
    let body = match collect(request.into_body(), super::BYTES_MAX, body_within).await {
        Ok(body) => body,
        Err(BodyError::TooLarge) => {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "a request has at most 64 KiB\n");
        }
        Err(BodyError::TooSlow) => return plain(StatusCode::REQUEST_TIMEOUT, "too slow\n"),
        Err(_) => return plain(StatusCode::BAD_REQUEST, "the body broke off\n"),
    };
    let request = match read::request(&body) {
        Ok(request) => request,
        Err(why) => return plain(StatusCode::BAD_REQUEST, format!("{why}\n")),
    };
    match service.decide(&request, Caller::default()).await {
        Err(status) => plain(StatusCode::BAD_REQUEST, format!("{}\n", status.message)),
        Ok(response) => {
            let mut answer = Response::new(Body::from(write(&response).to_string()));
            if response.overall_code == wire::OVER_LIMIT {
                *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            }
            let json = HeaderValue::from_static("application/json");
            answer.headers_mut().insert(CONTENT_TYPE, json);
            answer
        }
    }
}

pub(super) fn plain(status: StatusCode, text: impl Into<String>) -> Response {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

/// Defaults are left out, as the mapping of proto3 has it.
pub(super) fn write(response: &RateLimitResponse) -> Value {
    let code = |code: i32| if code == wire::OK { "OK" } else { "OVER_LIMIT" };
    let status = |one: &wire::DescriptorStatus| {
        let mut status = Map::new();
        status.insert("code".into(), code(one.code).into());
        if let Some(limit) = &one.current_limit {
            let mut shown = Map::new();
            some(&mut shown, "requestsPerUnit", limit.requests_per_unit.into());
            some(&mut shown, "unit", Unit::of_number(limit.unit).map_or("", Unit::name).into());
            some(&mut shown, "name", limit.name.as_str().into());
            status.insert("currentLimit".into(), shown.into());
        }
        some(&mut status, "limitRemaining", one.limit_remaining.into());
        if let Some(left) = &one.duration_until_reset {
            status.insert("durationUntilReset".into(), format!("{}s", left.seconds).into());
        }
        Value::from(status)
    };
    let header = |one: &wire::HeaderValue| json!({"key": one.key, "value": one.value});
    let list = |all: &[wire::HeaderValue]| all.iter().map(header).collect::<Vec<_>>();
    let mut out = Map::new();
    out.insert("overallCode".into(), code(response.overall_code).into());
    out.insert("statuses".into(), response.statuses.iter().map(status).collect());
    some(&mut out, "responseHeadersToAdd", list(&response.response_headers_to_add).into());
    some(&mut out, "requestHeadersToAdd", list(&response.request_headers_to_add).into());
    some(&mut out, "rawBody", base64(&response.raw_body).into());
    if let Some(metadata) = &response.dynamic_metadata {
        out.insert("dynamicMetadata".into(), object(metadata));
    }
    out.into()
}

fn some(map: &mut Map<String, Value>, name: &str, value: Value) {
    let is_default = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        _ => false,
    };
    if !is_default {
        map.insert(name.into(), value);
    }
}

fn object(given: &wire::Struct) -> Value {
    let field =
        |field: &wire::Field| (field.key.clone(), field.value.as_ref().map_or(Value::Null, value));
    given.fields.iter().map(field).collect::<Map<_, _>>().into()
}

fn value(given: &wire::Value) -> Value {
    match &given.kind {
        None | Some(Kind::Null(_)) => Value::Null,
        Some(Kind::Number(number)) => (*number).into(),
        Some(Kind::Text(text)) => text.as_str().into(),
        Some(Kind::Bool(value)) => (*value).into(),
        Some(Kind::Struct(map)) => object(map),
        Some(Kind::List(list)) => list.values.iter().map(value).collect(),
    }
}

/// With padding, as the mapping of bytes has it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            match place <= chunk.len() {
                true => out.push(DIGITS[(bits >> (18 - 6 * place) & 63) as usize].into()),
                false => {
                    let _ = out.write_char('=');
                }
            }
        }
    }
    out
}
