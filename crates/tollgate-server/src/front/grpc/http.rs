//! The HTTP port of envoyproxy/ratelimit: `POST /json`, the same call in proto3 JSON, and
//! `/healthcheck`. `listen.http` and `listen.grpc` both have these paths.

use super::service::{CallContext, RateLimitService};
use super::writer::json as json_writer;
use crate::Node;
use crate::front::browser::{is_json, is_public_origin};
use crate::net::{Answer, BodyError, Request};
use hyper::StatusCode;
use std::time::Duration;

const JSON: &str = "/json";
const HEALTH: &str = "/healthcheck";

/// A complete answer.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    /// With 405 goes `Allow: POST`.
    status: StatusCode,
    content_type: &'static str,
    body: String,
}

/// Whether [`answer`] answers requests for this path.
pub(crate) fn is_http_path(path: &str) -> bool {
    [JSON, HEALTH].contains(&path)
}

/// Answers a request for one of the paths. The functions below it know of no connection.
pub(crate) async fn answer(
    service: &RateLimitService,
    Request { head, body, .. }: Request<'_>,
    body_within: Duration,
    answer: &mut Answer,
) {
    if head.path() == HEALTH {
        return health(&service.node).write(answer);
    }
    let is_by_page = head.headers.all("origin").any(is_public_origin);
    let is_json = is_json(head.headers.get("content-type"));
    let answered = match refusal(head.method, is_by_page, is_json) {
        Some(refusal) => refusal,
        None => match body.collect(super::BYTES_MAX, body_within).await {
            Ok(body) => json(service, &body).await,
            Err(error) => body_error(&error),
        },
    };
    answered.write(answer);
}

/// As the original answers at `/healthcheck`: 200 and `OK`, or 500 and nothing.
fn health(node: &Node) -> HttpAnswer {
    if node.health.is_ready() {
        HttpAnswer::text(StatusCode::OK, "OK")
    } else {
        HttpAnswer::text(StatusCode::INTERNAL_SERVER_ERROR, "")
    }
}

/// Refuses a call of `/json` by its head: 405 for another method, 403 and 415 if a web page could
/// have sent it.
fn refusal(method: &str, sent_by_page: bool, is_json: bool) -> Option<HttpAnswer> {
    let (status, text) = if method != "POST" {
        (StatusCode::METHOD_NOT_ALLOWED, "use POST\n")
    } else if sent_by_page {
        (StatusCode::FORBIDDEN, "this is for programs, not for web pages: leave out Origin\n")
    } else if !is_json {
        let text = "send JSON with Content-Type: application/json, as curl --json does\n";
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
    } else {
        return None;
    };
    Some(HttpAnswer::text(status, text))
}

/// The answer to a body that cannot be read.
fn body_error(error: &BodyError) -> HttpAnswer {
    let (status, text) = match error {
        BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "a request has at most 64 KiB\n"),
        BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too slow\n"),
        _ => (StatusCode::BAD_REQUEST, "the body broke off\n"),
    };
    HttpAnswer::text(status, text)
}

/// Answers the body of a call of `/json`: 200, 429 over a limit, 400 if it is malformed.
async fn json(service: &RateLimitService, body: &[u8]) -> HttpAnswer {
    let malformed =
        |why: &dyn std::fmt::Display| HttpAnswer::text(StatusCode::BAD_REQUEST, format!("{why}\n"));
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(why) => return malformed(&why),
    };
    let now_us = service.node.clock.now_us();
    let decided =
        service.decide(&request, CallContext::default(), now_us, |decision, fields, _| {
            let body = json_writer::object(|out| decision.write(fields, out)).to_string();
            let status =
                if decision.is_allowed() { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
            HttpAnswer { status, content_type: "application/json", body }
        });
    decided.await.unwrap_or_else(|status| malformed(&status.message))
}

impl HttpAnswer {
    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }

    pub(super) fn write(self, answer: &mut Answer) {
        answer.status = self.status;
        answer.header("content-type", self.content_type);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            answer.header("allow", "POST");
        }
        answer.body.extend_from_slice(self.body.as_bytes());
    }
}
