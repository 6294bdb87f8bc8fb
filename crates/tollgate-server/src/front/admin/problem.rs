//! Answers that are not what was asked for: RFC 9457, with the field to look at.

use crate::front::http::decode::{BadRequest, Fault};
use crate::net::BodyError;
use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::Value;

/// Why a call was not answered, and what to do about it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AdminProblem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    #[serde(serialize_with = "number")]
    status: StatusCode,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Box<Value>>,
    #[serde(skip)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

fn number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl AdminProblem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
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

    pub(super) fn bad(field: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail).at_field(field)
    }

    pub(super) fn at_field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    pub(super) fn with_diagnostics(mut self, diagnostics: Value) -> Self {
        self.diagnostics = Some(Box::new(diagnostics));
        self
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    pub(super) fn not_found(path: &str) -> Self {
        let detail = format!(
            "there is nothing at {path}; there are /healthz, /readyz, /metrics, /v1/policy, /v1/inspect, /v1/reset, /v1/block, /v1/unblock, /v1/reload and /v1/limits/NAME/mode"
        );
        Self::new(StatusCode::NOT_FOUND, detail).at_field("path")
    }

    pub(super) fn wrong_method(allowed: &'static str) -> Self {
        let detail = format!("this method is not for this path; use {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, detail)
            .at_field("method")
            .with_header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// Something went wrong here.
    pub(super) fn panicked(what: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{what} broke off; see the log"))
    }

    pub(super) fn no_token_configured() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "the admin API is off, since no token is configured; set `admin: {token: {env: TOLLGATE_ADMIN_TOKEN}}` in the policy file, put a long random text into that variable and restart",
        )
        .at_field("authorization")
    }

    /// A page whose name comes to mean this machine would be served otherwise.
    pub(super) fn wrong_host(host: &str) -> Self {
        let detail = format!(
            "the admin listener does not answer to the name `{}`; call it by an address or as localhost, or add the name to `admin.hosts` in the policy file",
            host.escape_debug()
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, detail).at_field("host")
    }

    pub(super) fn unauthorised(detail: &str) -> Self {
        let challenge = HeaderValue::from_static("Bearer realm=\"tollgate admin\"");
        Self::new(StatusCode::UNAUTHORIZED, detail)
            .at_field("authorization")
            .with_header(WWW_AUTHENTICATE, challenge)
    }

    pub(super) fn too_many_tries(wait_us: u64) -> Self {
        let seconds = wait_us.div_ceil(1_000_000);
        let detail = format!(
            "too many wrong tokens came from your address; wait {seconds} s, whatever token you have"
        );
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail)
            .at_field("authorization")
            .with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    pub(super) fn not_json() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send JSON with `Content-Type: application/json`; `curl --json` does",
        )
        .at_field("content-type")
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn header(&self) -> Option<&(HeaderName, HeaderValue)> {
        self.header.as_deref()
    }
}

impl From<BadRequest> for AdminProblem {
    fn from(bad: BadRequest) -> Self {
        let status = match bad.fault {
            Fault::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, bad.fault.to_string()).at_field(bad.field.as_deref().unwrap_or("body"))
    }
}

impl From<BodyError> for AdminProblem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Fault::TooLarge.into(),
            BodyError::TooSlow => {
                Self::new(StatusCode::REQUEST_TIMEOUT, error.to_string()).at_field("body")
            }
            BodyError::Broken | BodyError::PeerClosed => Self::bad("body", error.to_string()),
        }
    }
}

impl From<Fault> for AdminProblem {
    fn from(fault: Fault) -> Self {
        BadRequest::from(fault).into()
    }
}
