//! Answers that the gateway gives itself, and how each request is counted.

pub(super) mod status;

use super::{exchange::ExchangeError, validate::InvalidRequest};
use crate::{
    Node,
    metrics::{Front, Metrics, Outcome},
    net::{Answer, BodyError, RequestHead},
    trace,
};
use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use std::time::Duration;
use tollgate::Verdict;
use tollgate_policy::facts::Facts;
use tollgate_tower::{Ambiguity, Refusal};

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

/// Counts and traces a decision.
pub(super) fn observe<'a>(
    node: &'a Node,
    parent: Option<&'a str>,
) -> impl Fn(&Facts<'_>, &Verdict<'_>, u64) + Sync + 'a {
    move |facts, verdict, start_us| {
        let end_us = node.clock.now_us();
        let elapsed = Duration::from_micros(end_us.saturating_sub(start_us));
        node.metrics.observe(Front::Gateway, elapsed);
        if trace::enabled() {
            let decided = trace::DecisionContext {
                front: Front::Gateway.name(),
                parent,
                key_hash: trace::key_hash(facts, verdict),
                start_us,
                end_us,
            };
            trace::record_decision(&decided, verdict);
        }
    }
}

/// Answers a refused request, in the form that it asks for.
pub(super) fn refuse(refusal: Refusal, head: &RequestHead<'_>, answer: &mut Answer) -> Outcome {
    let outcome = match refusal.status {
        StatusCode::SERVICE_UNAVAILABLE => Outcome::FailClosed,
        _ => Outcome::Refused,
    };
    // Two headers say which form that is.
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

/// A request that is counted once, whatever becomes of it. Dropped with nothing said about it, it
/// has been abandoned by whoever asked.
#[must_use = "dropping it counts the request"]
pub(super) struct OutcomeRecorder<'a>(Option<&'a Metrics>);

impl<'a> OutcomeRecorder<'a> {
    pub(super) fn new(metrics: &'a Metrics) -> Self {
        Self(Some(metrics))
    }

    /// It has been answered.
    pub(super) fn record(mut self, outcome: Outcome) {
        self.record_once(outcome);
    }

    fn record_once(&mut self, outcome: Outcome) {
        if let Some(metrics) = self.0.take() {
            metrics.count_request(Front::Gateway, outcome);
        }
    }
}

impl Drop for OutcomeRecorder<'_> {
    fn drop(&mut self) {
        self.record_once(match std::thread::panicking() {
            false => Outcome::Abandoned,
            true => Outcome::Error,
        });
    }
}
