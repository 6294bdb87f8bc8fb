//! What is answered to a request that cannot be: a problem after RFC 9457 that names the field to look at.

use super::{
    decode::{BODY_BYTES_MAX, BadRequest, Fault},
    encode,
};
use crate::{
    metrics::Outcome,
    net::{Body, BodyError, Response},
};
use hyper::{
    HeaderMap, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use std::borrow::Cow;
use tollgate::ReservationError;
use tollgate_core::header;

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Problem {
    /// Nothing is served there.
    NoSuchPath,
    /// Something is, but it is asked for in another way.
    Method { allow: &'static str },
    /// Nobody, or several, are asked, which only those on the way could have done.
    Host,
    /// A web page sent it.
    Page,
    /// The body does not say that it is JSON.
    NotJson,
    /// The body is compressed.
    Encoded,
    /// The body is too large, too slow or broken off.
    Body(BodyError),
    /// The body does not say what the operation needs.
    Bad(BadRequest),
    /// An attribute cannot be what it is.
    Attribute { name: Box<str>, why: String },
    /// The reservation is not to be had.
    Reservation(ReservationError),
    /// The system gave no random bytes, and a reservation that can be guessed is worse than none.
    NoRandom,
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Host => StatusCode::BAD_REQUEST,
            Self::Page => StatusCode::FORBIDDEN,
            Self::NotJson | Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(BodyError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
            Self::Bad(BadRequest { fault: Fault::TooLarge, .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyError::Broken | BodyError::Left)
            | Self::Bad(_)
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
            Self::NoSuchPath => "path".into(),
            Self::Method { .. } => "method".into(),
            Self::Host => "host".into(),
            Self::Page => "origin".into(),
            Self::NotJson => "content-type".into(),
            Self::Encoded => "content-encoding".into(),
            Self::Body(_) => "body".into(),
            Self::Bad(bad) => bad.field.as_deref().unwrap_or("body").into(),
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
            Self::NotJson => {
                "the body has to be JSON and say so: send Content-Type: application/json, as curl --json does".into()
            }
            Self::Host => "a request over HTTP/1.1 has one Host field".into(),
            Self::Page => "the check API is for programs, and this request is from a web page; ask from a server, or leave out the Origin header".into(),
            Self::Encoded => "send the body as it is, without Content-Encoding".into(),
            Self::Body(BodyError::TooLarge) => {
                format!("larger than {BODY_BYTES_MAX} bytes; send less").into()
            }
            Self::Body(error) => error.to_string().into(),
            Self::Bad(bad) => bad.fault.to_string().into(),
            Self::Attribute { why, .. } => why.into(),
            Self::Reservation(error) => error.to_string().into(),
            Self::NoRandom => "the system gave no random bytes for a reservation; try again".into(),
        }
    }

    /// How it counts.
    pub(super) fn outcome(&self) -> Outcome {
        match self.status().is_server_error() {
            true => Outcome::Error,
            false => Outcome::Invalid,
        }
    }

    /// The answer, in the header map of the request.
    pub(super) fn into_response(self, mut headers: HeaderMap) -> Response {
        let status = self.status();
        headers.clear();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(header::Problem::MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match &self {
            Self::Method { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            // What is left of the body would have to be read before anything else could be.
            Self::Body(_) => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ if status == StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        let mut response = Response::new(Body::from(self.render(status)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    fn render(&self, status: StatusCode) -> Vec<u8> {
        let mut out = b"{\"type\":\"about:blank\",\"title\":".to_vec();
        encode::string(&mut out, status.canonical_reason().unwrap_or_default());
        out.extend_from_slice(b",\"status\":");
        encode::integer(&mut out, status.as_u16().into());
        out.extend_from_slice(b",\"detail\":");
        encode::string(&mut out, &self.detail());
        out.extend_from_slice(b",\"field\":");
        encode::string(&mut out, &self.field());
        out.push(b'}');
        out
    }
}
