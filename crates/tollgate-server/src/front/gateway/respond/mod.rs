//! Answers of the gateway itself.

pub(super) mod status;

use super::{exchange::ExchangeError, validate::InvalidRequest};
use crate::front::ambiguous_path::LoggedReasons;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use tollgate_net::{BodyError, HttpResponse, RequestHead};
use tollgate_observe::metrics::{Front, Outcome};
use tollgate_policy::settings::AmbiguousPaths;
use tollgate_tower::{Ambiguity, Refusal};

/// The value of `Allow`. Other methods are forwarded too.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The reasons of ambiguous paths that were logged.
static AMBIGUOUS: LoggedReasons = LoggedReasons::new();

/// Answers a request without a response from an upstream.
pub(super) fn exchange_failed(error: ExchangeError, answer: &mut HttpResponse) {
    let bad_gateway = |detail| (StatusCode::BAD_GATEWAY, detail);
    let (status, detail) = match error {
        ExchangeError::Connect => bad_gateway("no upstream can be reached"),
        ExchangeError::Protocol => bad_gateway("the upstream gave no valid response"),
        ExchangeError::TooLarge => bad_gateway("the head of the upstream's response is too large"),
        ExchangeError::Timeout => (StatusCode::GATEWAY_TIMEOUT, "the upstream took too long"),
        ExchangeError::Client(BodyError::TooSlow) => {
            (StatusCode::REQUEST_TIMEOUT, "the request's body took too long")
        }
        ExchangeError::Client(_) => (StatusCode::BAD_REQUEST, "the request's body broke off"),
    };
    answer.set_problem(status, detail, None);
    // The rest of a failed body would be read as the next request.
    answer.close = matches!(error, ExchangeError::Client(_));
}

/// Answers a request with an ambiguous head.
pub(super) fn invalid(invalid: InvalidRequest, answer: &mut HttpResponse) -> Outcome {
    let (status, detail) = invalid.problem();
    answer.set_problem(status, detail, None);
    answer.close = true;
    if invalid == InvalidRequest::Connect {
        answer.header("allow", METHODS);
    }
    Outcome::Invalid
}

/// Answers a request whose path an upstream could read differently from the limits.
pub(super) fn ambiguous(
    why: &Ambiguity,
    paths: AmbiguousPaths,
    answer: &mut HttpResponse,
) -> Outcome {
    AMBIGUOUS.log(Front::Gateway.name(), paths, why);
    answer.set(why.response());
    answer.close = true;
    Outcome::Invalid
}

/// Answers a refused request, in the format that its headers accept.
pub(super) fn refuse(
    refusal: Refusal,
    head: &RequestHead<'_>,
    answer: &mut HttpResponse,
) -> Outcome {
    let outcome = Outcome::of_refusal(&refusal);
    let mut accepts = HeaderMap::new();
    for name in [ACCEPT, CONTENT_TYPE] {
        for value in head.headers.all(name.as_str()) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                accepts.append(&name, value);
            }
        }
    }
    answer.set(refusal.into_response(&accepts));
    outcome
}
