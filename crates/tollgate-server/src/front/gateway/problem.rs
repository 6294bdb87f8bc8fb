//! Answers of the gateway itself, after RFC 9457.

use super::{body::Answer, exchange::Fault, settle::Invalid};
use crate::net::BodyError;
use hyper::{
    Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tollgate_core::header::Problem;
use tollgate_tower::Ambiguity;

/// The answer to a request that has no other. Where some of that may not have been read, its connection ends: what would come next by it is the rest of a body.
pub(super) fn fault(fault: Fault, may_be_unread: bool) -> Response<Answer> {
    let (status, detail) = match fault {
        Fault::Connect => (StatusCode::BAD_GATEWAY, "no server can be reached"),
        Fault::Protocol => (StatusCode::BAD_GATEWAY, "the server broke off without an answer"),
        Fault::TooLarge => {
            (StatusCode::BAD_GATEWAY, "the head of the server's answer is too large")
        }
        Fault::Timeout => (StatusCode::GATEWAY_TIMEOUT, "the server took too long to answer"),
        Fault::Client(BodyError::TooSlow) => {
            (StatusCode::REQUEST_TIMEOUT, "the request's body took too long")
        }
        Fault::Client(_) => (StatusCode::BAD_REQUEST, "the request's body broke off"),
    };
    let mut response = answer(status, detail);
    if may_be_unread {
        say_close(response.headers_mut());
    }
    response
}

/// The answer to a request that cannot be understood in one way only.
pub(super) fn invalid(invalid: Invalid) -> Response<Answer> {
    let mut response = answer(invalid.status(), invalid.detail());
    let headers = response.headers_mut();
    say_close(headers);
    if invalid == Invalid::Connect {
        headers.insert(ALLOW, HeaderValue::from_static(METHODS));
    }
    response
}

/// The answer to a question about limits that cannot be answered.
pub(super) fn status(
    status: StatusCode,
    detail: &str,
    extra: Option<(HeaderName, String)>,
) -> Response<Answer> {
    let mut response = answer(status, detail);
    if let Some((name, value)) = extra
        && let Ok(value) = HeaderValue::try_from(value)
    {
        response.headers_mut().insert(name, value);
    }
    response
}

/// The answer to a request that an upstream could read in another way than it would be counted.
pub(super) fn ambiguous(why: &Ambiguity) -> Response<Answer> {
    let mut response = why.response().map(Answer::own);
    say_close(response.headers_mut());
    response
}

/// What `Allow` says. Servers may take others, which go on to them.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Tells a client that its connection ends with this answer.
pub(super) fn say_close(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
}

fn answer(status: StatusCode, detail: &str) -> Response<Answer> {
    let title = status.canonical_reason().unwrap_or_default();
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{},\"detail\":\"{detail}\"}}",
        status.as_u16()
    );
    let mut response = Response::new(Answer::own(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
