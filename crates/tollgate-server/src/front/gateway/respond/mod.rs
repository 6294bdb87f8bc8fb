//! Answers of the gateway itself, and the outcome that is counted.

pub(super) mod status;

use super::{exchange::ExchangeError, validate::InvalidRequest};
use crate::{Node, front::ambiguous_path::LoggedReasons};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use std::time::Duration;
use tollgate::engine::{Rules, Verdict};
use tollgate_net::{BodyError, HttpResponse, RequestHead};
use tollgate_observe::metrics::{Front, Metrics, Outcome};
use tollgate_observe::record::{DecidedKey, DecidedRequest, RECORDED_HEADERS};
use tollgate_observe::top::CountedRequest;
use tollgate_policy::facts::Facts;
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

/// Counts, traces and logs a decision.
pub(super) fn observe<'a>(
    node: &'a Node,
    head: &'a RequestHead<'_>,
) -> impl Fn(&Rules, &Facts<'_>, &Verdict<'_>, u64) + Sync + 'a {
    move |rules, facts, verdict, start_us| {
        let end_us = node.clock.now_us();
        let elapsed = Duration::from_micros(end_us.saturating_sub(start_us));
        node.metrics.observe(Front::Gateway, elapsed);
        node.metrics.count_tier(rules, facts, verdict);
        let counted = CountedRequest { rules, facts, cost: 1, verdict };
        node.top.take_off_shed(end_us, &counted);
        if node.watches_decisions() {
            let (front, key, is_peek) = (Front::Gateway.name(), DecidedKey::Facts(facts), false);
            let [parent, request_id] = RECORDED_HEADERS.map(|name| head.headers.text(name));
            let decided =
                DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
            node.records.record(&node.keys, rules, &decided, verdict);
        }
    }
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

/// Counts a request when dropped. Without an outcome, the client left or the handler panicked.
pub(super) struct OutcomeRecorder<'a> {
    pub(super) metrics: &'a Metrics,
    pub(super) outcome: Option<Outcome>,
}

impl Drop for OutcomeRecorder<'_> {
    fn drop(&mut self) {
        let cancelled = if std::thread::panicking() { Outcome::Error } else { Outcome::Abandoned };
        self.metrics.count_request(Front::Gateway, self.outcome.unwrap_or(cancelled));
    }
}
