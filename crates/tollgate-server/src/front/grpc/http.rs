//! The HTTP port of envoyproxy/ratelimit: `POST /json`, the same call in proto3 JSON, and
//! `/healthcheck`. `listen.http` and `listen.grpc` both have these paths.

use super::json_writer;
use super::service::{Caller, Service};
use crate::Node;
use crate::front::{media::is_json, page::sent_by_page};
use crate::net::{Body, BodyError, Request, Response, collect};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use std::time::Duration;

const JSON: &str = "/json";
const HEALTH: &str = "/healthcheck";

/// A complete answer, for any HTTP.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    /// With 405 goes `Allow: POST`.
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// Whether [`answer`] answers requests for this path.
pub(crate) fn is_http_path(path: &str) -> bool {
    [JSON, HEALTH].contains(&path)
}

/// Answers a request for one of the paths. The functions below it know of no connection.
pub(crate) async fn answer(service: &Service, request: Request, body_within: Duration) -> Response {
    if request.uri().path() == HEALTH {
        return health(&service.node).into_response();
    }
    let (headers, method) = (request.headers(), request.method());
    let refusal = refusal(method, sent_by_page(headers), is_json(headers));
    let answer = match refusal {
        Some(refusal) => refusal,
        None => match collect(request.into_body(), super::BYTES_MAX, body_within).await {
            Ok(body) => json(service, &body).await,
            Err(error) => unread(&error),
        },
    };
    answer.into_response()
}

/// As the original answers at `/healthcheck`: 200 and `OK`, or 500 and nothing.
pub(crate) fn health(node: &Node) -> HttpAnswer {
    if node.health.is_ready() {
        HttpAnswer::text(StatusCode::OK, "OK")
    } else {
        HttpAnswer::text(StatusCode::INTERNAL_SERVER_ERROR, "")
    }
}

/// Refuses a call of `/json` by its head: 405 for another method, 403 and 415 if a web page could
/// have sent it.
pub(crate) fn refusal(method: &Method, sent_by_page: bool, is_json: bool) -> Option<HttpAnswer> {
    let (status, text) = if method != Method::POST {
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
pub(crate) fn unread(error: &BodyError) -> HttpAnswer {
    let (status, text) = match error {
        BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "a request has at most 64 KiB\n"),
        BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "too slow\n"),
        _ => (StatusCode::BAD_REQUEST, "the body broke off\n"),
    };
    HttpAnswer::text(status, text)
}

/// Answers the body of a call of `/json`: 200, 429 over a limit, 400 if it is malformed.
pub(crate) async fn json(service: &Service, body: &[u8]) -> HttpAnswer {
    let malformed =
        |why: &dyn std::fmt::Display| HttpAnswer::text(StatusCode::BAD_REQUEST, format!("{why}\n"));
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(why) => return malformed(&why),
    };
    let now_us = service.node.clock.now_us();
    let decided = service.decide(&request, Caller::default(), now_us, |decision, fields, _| {
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

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
