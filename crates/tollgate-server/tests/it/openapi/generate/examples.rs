//! A sample of every body, for the built-in policy and for one with token costs.

use serde_json::{Value, json};
use tollgate_server::front::http::decode::Op;

const RESERVATION: &str = "qJ3vT0oYcQ2mWf9b";

pub(super) fn requests(op: Op) -> Value {
    match op {
        Op::Check | Op::Peek => json!({
            "one": {"summary": "One request of a user", "value": {"attributes": {"user": "42", "path": "/api/x"}}},
            "costly": {"summary": "One that counts as five", "value": {"attributes": {"ip": "203.0.113.7"}, "cost": 5}},
        }),
        Op::Reserve => json!({
            "tokens": {
                "summary": "A call that may use 500 tokens within a minute",
                "value": {"attributes": {"user": "42"}, "cost": 500, "ttl": "1m"},
            },
        }),
        Op::Settle => json!({
            "tokens": {"summary": "It used 120", "value": {"reservation": RESERVATION, "cost": 120}},
        }),
        _ => json!({
            "tokens": {"summary": "It used none", "value": {"reservation": RESERVATION}},
        }),
    }
}

fn limit(allowed: bool, remaining: u64, retry_after: f64) -> Value {
    json!({
        "name": "per-user", "allowed": allowed, "limit": 100, "remaining": remaining, "reset_after": 105.0,
        "retry_after": retry_after, "mode": "enforce", "source": "memory",
    })
}

pub(super) fn admitted(op: Op) -> Value {
    let mut answer = json!({
        "allowed": true, "delay": 0.0, "retry_after": 0.0, "source": "memory", "limits": [limit(true, 99, 0.0)],
    });
    if op == Op::Reserve {
        answer["reservation"] = RESERVATION.into();
        answer["expires_after"] = 60.0.into();
    }
    answer
}

pub(super) fn refused() -> Value {
    json!({
        "allowed": false, "delay": 0.0, "retry_after": 1.25, "source": "memory", "limits": [limit(false, 0, 1.25)],
    })
}

pub(super) fn ended(op: Op) -> Value {
    let charged = if op == Op::Settle { 120 } else { 0 };
    json!({"reservation": RESERVATION, "charged": charged, "limits": [limit(true, 99, 0.0)]})
}

pub(super) fn problem(op: Op, status: u16) -> Value {
    let (title, detail, field) = match status {
        // A cancel has no cost that could be invalid.
        400 if op == Op::Cancel => {
            ("Bad Request", "missing; this operation needs it", "reservation")
        }
        400 => ("Bad Request", "negative; a cost is 0 or more", "cost"),
        403 => (
            "Forbidden",
            "the check API is for programs, and this request is from a web page; call it from a server, or leave out the Origin header",
            "origin",
        ),
        404 => ("Not Found", "no such reservation; it may have expired", "reservation"),
        408 => ("Request Timeout", "the body took too long", "body"),
        409 => ("Conflict", "the reservation has already ended in another way", "reservation"),
        413 => ("Payload Too Large", "larger than 65536 bytes", "body"),
        415 => (
            "Unsupported Media Type",
            "send JSON with `Content-Type: application/json`, as `curl --json` does",
            "content-type",
        ),
        _ => ("Service Unavailable", "too many reservations are open; let some end", "reservation"),
    };
    json!({"type": "about:blank", "title": title, "status": status, "detail": detail, "field": field})
}
