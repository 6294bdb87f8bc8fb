//! From a decision to what proxies understand.

use super::decode::{AmbiguousRequest, AuthRequestError};
use crate::front::problem::Problem;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tollgate_tower::Refusal;

pub(super) const DECISION: HeaderName = HeaderName::from_static("x-tollgate-decision");
pub(super) const REASON: HeaderName = HeaderName::from_static("x-tollgate-reason");

/// The request may pass.
pub(super) fn allow(headers: HeaderMap) -> Response<String> {
    answer(StatusCode::OK, "allow", headers, String::new())
}

/// It may not: with the status that the proxy can pass on. Some proxies pass the body on too.
pub(super) fn deny(refusal: &Refusal, deny_status: Option<u16>) -> Response<String> {
    let status = deny_status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(refusal.status);
    let mut headers = HeaderMap::new();
    refusal.write_headers(&mut headers);
    // A problem repeats the status, so it goes with its own only.
    let mut body = String::new();
    if status == refusal.status {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        body = refusal.problem();
    }
    answer(status, "deny", headers, body)
}

/// It may not, whatever the limits say. The reason tells a proxy that can pass on few statuses that
/// this is no lack of quota.
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

/// Answers a proxy that asks wrongly: 403.
pub(super) fn forbid(why: &AuthRequestError) -> Response<String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // Some proxies pass this body on to clients, who must not learn how the proxy is set up.
    let body = match why {
        AuthRequestError::Untrusted => "forward-auth answers proxies in `trusted_proxies` only\n",
        _ => "forward-auth was not asked as it should be; tollgate's log says more\n",
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
