//! Problems of the check API.

use super::decode::BadRequest;
use crate::front::problem::Problem;
use hyper::StatusCode;
use hyper::header::{HeaderValue, RETRY_AFTER};
use tollgate::engine::ReservationError;
use tollgate_net::{BodyError, HttpResponse};
use tollgate_observe::metrics::Outcome;

/// The reason why a request has no answer.
#[derive(Debug)]
pub(super) enum CheckProblem {
    NoSuchPath,
    Method {
        allow: &'static str,
    },
    /// The target of the request is not a URI.
    Target,
    /// A request by HTTP/1.1 without a `Host`, or with several.
    Host,
    FromWebPage,
    NotJson,
    /// The body is compressed.
    ContentEncoding,
    Body(BodyError),
    BadBody(BadRequest),
    Attribute {
        name: Box<str>,
        why: String,
    },
    Reservation(ReservationError),
    /// The system has no random numbers. A guessable reservation is worse than none.
    NoRandom,
}

impl CheckProblem {
    /// Writes the answer. Returns the outcome for metrics.
    #[cold]
    pub(super) fn write(self, answer: &mut HttpResponse) -> Outcome {
        // The connection would have to drain the rest of the body before the next request.
        let close = matches!(self, Self::Body(_));
        let problem = self.into_problem();
        let outcome = problem.outcome();
        answer.set(problem.into_response());
        answer.close = close;
        outcome
    }

    fn into_problem(self) -> Problem {
        match self {
            Self::NoSuchPath => {
                let detail = "unknown path; use POST /v1/check, /v1/peek, /v1/reserve, /v1/settle or /v1/cancel, GET /openapi.json, or /v1/forward-auth";
                Problem::new(StatusCode::NOT_FOUND, detail).at("path")
            }
            Self::Method { allow } => Problem::wrong_method(allow),
            Self::Target => Problem::bad("path", "the target of the request is not a URI"),
            Self::Host => Problem::no_host(),
            Self::FromWebPage => {
                let detail = "the check API is for programs, and this request is from a web page; call it from a server, or leave out the Origin header";
                Problem::new(StatusCode::FORBIDDEN, detail).at("origin")
            }
            Self::NotJson => Problem::not_json(),
            Self::ContentEncoding => {
                let detail = "send the body without Content-Encoding";
                Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).at("content-encoding")
            }
            Self::Body(error) => error.into(),
            Self::BadBody(bad) => bad.into(),
            Self::Attribute { name, why } => Problem::bad(&format!("attributes.{name}"), why),
            Self::Reservation(error) => reservation_problem(&error),
            Self::NoRandom => {
                retry("the system has no random numbers for a reservation; try again")
            }
        }
    }
}

fn reservation_problem(error: &ReservationError) -> Problem {
    let text = error.to_string();
    match error {
        ReservationError::Unknown => Problem::new(StatusCode::NOT_FOUND, text).at("reservation"),
        ReservationError::Ended | ReservationError::Taken => {
            Problem::new(StatusCode::CONFLICT, text).at("reservation")
        }
        ReservationError::CostTooLarge => Problem::bad("cost", text),
        ReservationError::TtlOutOfRange => Problem::bad("ttl", text),
        _ => retry(text),
    }
}

/// A 503 for a reservation that may succeed in a second.
fn retry(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    let problem = Problem::unavailable(detail).at("reservation");
    problem.with_header(RETRY_AFTER, HeaderValue::from_static("1"))
}
