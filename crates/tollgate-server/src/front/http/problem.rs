//! What is answered to a request that cannot be: a problem after RFC 9457 that names the field to
//! look at.

use super::{
    decode::{BODY_BYTES_MAX, BadRequest, Fault},
    encode,
};
use crate::{
    net::{Answer, BodyError},
    observe::metrics::Outcome,
};
use hyper::StatusCode;
use std::borrow::Cow;
use tollgate::ReservationError;
use tollgate_core::header;

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum CheckProblem {
    /// Nothing is served there.
    NoSuchPath,
    /// Something is, but it is asked for in another way.
    Method { allow: &'static str },
    /// The target of the request is no URI.
    Target,
    /// Nobody, or several, are asked, which only those on the way could have done.
    Host,
    /// A web page sent it.
    FromWebPage,
    /// The body does not say that it is JSON.
    NotJson,
    /// The body is compressed.
    ContentEncoding,
    /// The body is too large, too slow or broken off.
    Body(BodyError),
    /// The body does not say what the operation needs.
    BadBody(BadRequest),
    /// An attribute cannot be what it is.
    Attribute { name: Box<str>, why: String },
    /// The reservation is not to be had.
    Reservation(ReservationError),
    /// The system gave no random bytes, and a reservation that can be guessed is worse than none.
    NoRandom,
}

impl CheckProblem {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Target | Self::Host => StatusCode::BAD_REQUEST,
            Self::FromWebPage => StatusCode::FORBIDDEN,
            Self::NotJson | Self::ContentEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(BodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
            Self::BadBody(BadRequest { fault: Fault::TooLarge, .. }) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Body(BodyError::Broken | BodyError::PeerClosed)
            | Self::BadBody(_)
            | Self::Attribute { .. } => StatusCode::BAD_REQUEST,
            Self::Reservation(error) => match error {
                ReservationError::Unknown => StatusCode::NOT_FOUND,
                ReservationError::Ended | ReservationError::Taken => StatusCode::CONFLICT,
                ReservationError::CostTooLarge | ReservationError::TtlOutOfRange => {
                    StatusCode::BAD_REQUEST
                }
                _ => StatusCode::SERVICE_UNAVAILABLE,
            },
            Self::NoRandom => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The member of the body to look at, or the part of the request.
    fn field(&self) -> Cow<'_, str> {
        match self {
            Self::NoSuchPath | Self::Target => "path".into(),
            Self::Method { .. } => "method".into(),
            Self::Host => "host".into(),
            Self::FromWebPage => "origin".into(),
            Self::NotJson => "content-type".into(),
            Self::ContentEncoding => "content-encoding".into(),
            Self::Body(_) => "body".into(),
            Self::BadBody(bad) => bad.field.as_deref().unwrap_or("body").into(),
            Self::Attribute { name, .. } => format!("attributes.{name}").into(),
            Self::Reservation(ReservationError::CostTooLarge) => "cost".into(),
            Self::Reservation(ReservationError::TtlOutOfRange) => "ttl".into(),
            Self::Reservation(_) | Self::NoRandom => "reservation".into(),
        }
    }

    fn detail(&self) -> Cow<'_, str> {
        match self {
            Self::NoSuchPath => {
                "there is nothing here; ask POST /v1/check, /v1/peek, /v1/reserve, /v1/settle or /v1/cancel, or GET /openapi.json; proxies ask /v1/forward-auth".into()
            }
            Self::Method { allow } => format!("ask with {allow}").into(),
            Self::Target => "the target of the request is no URI".into(),
            Self::NotJson => {
                "the body has to be JSON and say so: send Content-Type: application/json, as curl --json does".into()
            }
            Self::Host => "a request over HTTP/1.1 has one Host field".into(),
            Self::FromWebPage => "the check API is for programs, and this request is from a web page; ask from a server, or leave out the Origin header".into(),
            Self::ContentEncoding => "send the body as it is, without Content-Encoding".into(),
            Self::Body(BodyError::TooLarge) => {
                format!("larger than {BODY_BYTES_MAX} bytes; send less").into()
            }
            Self::Body(error) => error.to_string().into(),
            Self::BadBody(bad) => bad.fault.to_string().into(),
            Self::Attribute { why, .. } => why.into(),
            Self::Reservation(error) => error.to_string().into(),
            Self::NoRandom => "the system gave no random bytes for a reservation; try again".into(),
        }
    }

    /// Writes the answer. How it counts.
    #[cold]
    pub(super) fn write(&self, answer: &mut Answer) -> Outcome {
        let status = self.status();
        answer.status = status;
        answer.header("content-type", header::Problem::MEDIA_TYPE);
        answer.header("cache-control", "no-store");
        match self {
            Self::Method { allow } => answer.header("allow", allow),
            // The connection would have to skip the rest of the body before the next request.
            Self::Body(_) => answer.close = true,
            _ if status == StatusCode::SERVICE_UNAVAILABLE => answer.header("retry-after", "1"),
            _ => {}
        }
        self.write_json(status, &mut answer.body);
        match status.is_server_error() {
            true => Outcome::Error,
            false => Outcome::Invalid,
        }
    }

    fn write_json(&self, status: StatusCode, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"about:blank\",\"title\":");
        encode::string(out, status.canonical_reason().unwrap_or_default());
        out.extend_from_slice(b",\"status\":");
        encode::integer(out, status.as_u16().into());
        out.extend_from_slice(b",\"detail\":");
        encode::string(out, &self.detail());
        out.extend_from_slice(b",\"field\":");
        encode::string(out, &self.field());
        out.push(b'}');
    }
}
