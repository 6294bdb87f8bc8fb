//! Encodes a decision for proxies.

use super::decode::{AmbiguousRequest, AuthRequestError};
use crate::front::problem::Problem;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tollgate_tower::Refusal;

pub(super) const DECISION: HeaderName = HeaderName::from_static("x-tollgate-decision");
pub(super) const REASON: HeaderName = HeaderName::from_static("x-tollgate-reason");

/// The answer to an admitted request.
pub(super) fn allow(headers: HeaderMap) -> Response<String> {
    answer(StatusCode::OK, "allow", headers, String::new())
}

/// The answer to a refused request, with a status that the proxy can pass on. Some proxies pass on
/// the body too.
pub(super) fn deny(refusal: &Refusal, deny_status: Option<u16>) -> Response<String> {
    let status = deny_status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(refusal.status);
    let mut headers = HeaderMap::new();
    refusal.write_headers(&mut headers);
    // A problem repeats the status, so it is sent only with its own status.
    let mut body = String::new();
    if status == refusal.status {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        body = refusal.problem();
    }
    answer(status, "deny", headers, body)
}

/// The answer to an ambiguous request, independent of limits. The reason tells a proxy with few
/// possible statuses that this is not an exceeded quota.
pub(super) fn ambiguous(why: &AmbiguousRequest, deny_status: Option<u16>) -> Response<String> {
    let status = deny_status.and_then(|status| StatusCode::from_u16(status).ok());
    let mut headers = HeaderMap::new();
    headers.insert(REASON, HeaderValue::from_static(why.reason()));
    let body = match status {
        Some(_) => String::new(),
        None => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
            Problem::new(StatusCode::BAD_REQUEST, why.to_string()).to_json()
        }
    };
    answer(status.unwrap_or(StatusCode::BAD_REQUEST), "deny", headers, body)
}

/// The answer to an invalid call of a proxy: 403.
pub(super) fn forbid(why: &AuthRequestError) -> Response<String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // Some proxies pass this body on to clients, which must not learn the proxy's configuration.
    let body = match why {
        AuthRequestError::Untrusted => "forward-auth answers proxies in `trusted_proxies` only\n",
        _ => "invalid forward-auth call; see tollgate's log\n",
    };
    answer(StatusCode::FORBIDDEN, "misconfigured", headers, body.into())
}

fn answer(
    status: StatusCode,
    decision: &'static str,
    mut headers: HeaderMap,
    body: String,
) -> Response<String> {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(DECISION, HeaderValue::from_static(decision));
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}
