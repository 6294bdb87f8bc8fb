//! The routes, with all statuses of each.

use super::answer::{Problem, Reserved, Settled, Verdict};
use super::request::{CancelRequest, CheckRequest, ReserveRequest, SettleRequest};
use super::{SchemaTypes, examples, fields};
use serde_json::{Map, Value, json};
use tollgate_core::header;
use tollgate_server::front::http::decode::Op;

const JSON: &str = "application/json";
const PROBLEM: &str = header::Problem::MEDIA_TYPE;

pub(super) fn paths(types: &mut SchemaTypes) -> Map<String, Value> {
    let mut paths: Map<String, Value> = Op::ALL
        .into_iter()
        .map(|op| (format!("/v1/{}", op.as_str()), json!({"post": call(op, types)})))
        .collect();
    paths.insert("/openapi.json".to_owned(), json!({"get": description()}));
    paths
}

fn description() -> Value {
    json!({
        "operationId": "openapi",
        "summary": "This description",
        "responses": {
            "200": {
                "description": "The description.",
                "headers": fields::of_other(200),
                "content": {JSON: {"schema": {"type": "object", "required": ["openapi", "paths"]}}},
            },
        },
    })
}

fn call(op: Op, types: &mut SchemaTypes) -> Value {
    let (summary, description) = describe(op);
    let schema = match op {
        Op::Check | Op::Peek => types.request::<CheckRequest>(),
        Op::Reserve => types.request::<ReserveRequest>(),
        Op::Settle => types.request::<SettleRequest>(),
        _ => types.request::<CancelRequest>(),
    };
    let mut responses = problems(op, types);
    responses.extend(match op {
        Op::Check | Op::Peek | Op::Reserve => verdicts(op, types),
        _ => ended(op, types),
    });
    json!({
        "operationId": op.as_str(),
        "summary": summary,
        "description": description,
        "requestBody": {
            "required": true,
            "content": {JSON: {"schema": schema, "examples": examples::requests(op)}},
        },
        "responses": responses,
    })
}

fn describe(op: Op) -> (&'static str, &'static str) {
    match op {
        Op::Check => (
            "Decide and consume",
            "All limits that apply are charged, or none is. A concurrency limit keeps the slots until its `ttl`; use reserve \
             where there is an end.",
        ),
        Op::Peek => ("Decide and consume nothing", "The answer that a check would get now."),
        Op::Reserve => (
            "Decide, consume, and say later what it really was",
            "For work whose cost is known only afterwards, and for slots. A reservation that is neither settled nor cancelled \
             expires: the charge stays, slots are free again.",
        ),
        Op::Settle => (
            "Say what a reservation really cost",
            "The same call again gets the same answer; another one after the end gets 409.",
        ),
        _ => (
            "Give a reservation back",
            "The same call again gets the same answer; another one after the end gets 409.",
        ),
    }
}

/// The errors of every call, and those of this one.
fn problems(op: Op, types: &mut SchemaTypes) -> Map<String, Value> {
    let mut all = vec![
        (400, "The body is invalid or not JSON; `field` names the member."),
        (403, "A web page sent the request; the API is for programs."),
        (408, "The body did not arrive in time."),
        (413, "The body is larger than 64 KiB."),
        (415, "The body is not declared as JSON; send `Content-Type: application/json`."),
        (503, "The reservation cannot be kept or reached now."),
    ];
    if matches!(op, Op::Settle | Op::Cancel) {
        all.push((404, "There is no such reservation, or it has expired."));
        all.push((409, "The reservation has ended in another way."));
    } else {
        // The 503 of these operations is a verdict, not a problem.
        all.retain(|(status, _)| *status != 503);
    }
    all.into_iter()
        .map(|(status, what)| {
            let example = examples::problem(op, status);
            let content =
                json!({PROBLEM: {"schema": types.answer::<Problem>(), "example": example}});
            let mut response = response(what, fields::of_other(status));
            response.insert("content".to_owned(), content);
            (status.to_string(), response.into())
        })
        .collect()
}

fn verdicts(op: Op, types: &mut SchemaTypes) -> Map<String, Value> {
    let mut admitted = response("Admitted.", fields::of_verdict(false));
    let schema = match op {
        Op::Reserve => types.answer::<Reserved>(),
        _ => types.answer::<Verdict>(),
    };
    admitted.insert(
        "content".to_owned(),
        json!({JSON: {"schema": schema, "example": examples::admitted(op)}}),
    );
    if op == Op::Reserve {
        admitted.insert("links".to_owned(), links());
    }
    let verdict = types.answer::<Verdict>();
    let mut refused = response("Refused: a limit is exhausted.", fields::of_verdict(true));
    refused.insert(
        "content".to_owned(),
        json!({JSON: {"schema": verdict, "example": examples::refused()}}),
    );
    let mut failed = response(
        "Refused: a limit could not be decided and then refuses, or nothing can be reserved now.",
        fields::of_verdict(true),
    );
    let problem = types.answer::<Problem>();
    failed.insert(
        "content".to_owned(),
        json!({JSON: {"schema": verdict}, PROBLEM: {"schema": problem}}),
    );
    [("200", admitted), ("429", refused), ("503", failed)]
        .into_iter()
        .map(|(status, response)| (status.to_owned(), response.into()))
        .collect()
}

fn ended(op: Op, types: &mut SchemaTypes) -> Map<String, Value> {
    let mut done = response("Done, now or by the same call before.", fields::of_other(200));
    let content =
        json!({JSON: {"schema": types.answer::<Settled>(), "example": examples::ended(op)}});
    done.insert("content".to_owned(), content);
    [("200".to_owned(), done.into())].into_iter().collect()
}

/// Links from a reserve to the calls that end it.
fn links() -> Value {
    let reservation = "$response.body#/reservation";
    json!({
        "settle": {"operationId": "settle", "requestBody": {"reservation": reservation, "cost": 1}},
        "cancel": {"operationId": "cancel", "requestBody": {"reservation": reservation}},
    })
}

fn response(what: &str, headers: Map<String, Value>) -> Map<String, Value> {
    let mut response = Map::new();
    response.insert("description".to_owned(), what.into());
    response.insert("headers".to_owned(), headers.into());
    response
}
