//! Problems: answers by RFC 9457 that name the invalid part of the request.

use crate::front::http::decode::{BadRequest, Fault};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use tollgate_net::BodyError;
use tollgate_observe::metrics::Outcome;

/// The reason of a failed request, and its remedy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    #[serde(serialize_with = "status_code")]
    status: StatusCode,
    detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Box<Value>>,
    #[serde(skip)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

fn status_code<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            detail: detail.into(),
            field: None,
            diagnostics: None,
            header: None,
        }
    }

    /// A 400 that names the invalid field.
    pub(super) fn bad(field: &str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail).at(field)
    }

    pub(super) fn unavailable(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allowed} for this path"))
            .at("method")
            .with_header(ALLOW, HeaderValue::from_static(allowed))
    }

    pub(super) fn no_host() -> Self {
        Self::bad("host", "send one Host header with HTTP/1.1")
    }

    pub(super) fn not_json() -> Self {
        let detail = "send JSON with `Content-Type: application/json`, as `curl --json` does";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).at("content-type")
    }

    /// Sets the invalid member of the body or part of the request.
    pub(super) fn at(self, field: &str) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    pub(super) fn with_diagnostics(self, diagnostics: Value) -> Self {
        Self { diagnostics: Some(Box::new(diagnostics)), ..self }
    }

    pub(super) fn with_header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { header: Some(Box::new((name, value))), ..self }
    }

    /// The outcome of a request with this answer, for metrics.
    pub(super) fn outcome(&self) -> Outcome {
        if self.status.is_server_error() { Outcome::Error } else { Outcome::Invalid }
    }

    /// The JSON body.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The complete response.
    #[cold]
    pub(super) fn into_response(self) -> Response<String> {
        let mut response = Response::new(self.to_json());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.header.map(|header| (Some(header.0), header.1)));
        response
    }
}

impl From<BadRequest> for Problem {
    fn from(bad: BadRequest) -> Self {
        let status = match bad.fault {
            Fault::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, bad.fault.to_string()).at(bad.field.as_deref().unwrap_or("body"))
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        BadRequest::from(fault).into()
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Fault::TooLarge.into(),
            _ => Self::new(error.status(), error.to_string()).at("body"),
        }
    }
}
