//! Answers of the gateway itself, after RFC 9457.

use super::{exchange::ExchangeError, validate::InvalidRequest};
use crate::{
    net::{Answer, BodyError},
    observe::metrics::Outcome,
};
use hyper::StatusCode;
use tollgate_tower::Ambiguity;

/// What `Allow` says. Upstreams may take others, which go on to them.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The answer to a request that has no other.
pub(super) fn exchange_failed(fault: ExchangeError, answer: &mut Answer) {
    let (status, detail) = match fault {
        ExchangeError::Connect => (StatusCode::BAD_GATEWAY, "no server can be reached"),
        ExchangeError::Protocol => {
            (StatusCode::BAD_GATEWAY, "the server broke off without an answer")
        }
        ExchangeError::TooLarge => {
            (StatusCode::BAD_GATEWAY, "the head of the server's answer is too large")
        }
        ExchangeError::Timeout => {
            (StatusCode::GATEWAY_TIMEOUT, "the server took too long to answer")
        }
        ExchangeError::Client(BodyError::TooSlow) => {
            (StatusCode::REQUEST_TIMEOUT, "the request's body took too long")
        }
        ExchangeError::Client(_) => (StatusCode::BAD_REQUEST, "the request's body broke off"),
    };
    answer.set_problem(status, detail, None);
    // What comes next by the connection is the rest of a body.
    answer.close = matches!(fault, ExchangeError::Client(_));
}

/// The answer to a request that cannot be understood in one way only.
pub(super) fn invalid(invalid: InvalidRequest, answer: &mut Answer) -> Outcome {
    answer.set_problem(invalid.status(), invalid.detail(), None);
    answer.close = true;
    if invalid == InvalidRequest::Connect {
        answer.header("allow", METHODS);
    }
    Outcome::Invalid
}

/// The answer to a request that an upstream could read in another way than it would be counted.
pub(super) fn ambiguous(why: &Ambiguity, answer: &mut Answer) -> Outcome {
    answer.set(why.response());
    answer.close = true;
    Outcome::Invalid
}
