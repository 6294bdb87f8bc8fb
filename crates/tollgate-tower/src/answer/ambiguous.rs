//! The answer to a request that servers read in more than one way.

use crate::Ambiguity;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use tollgate_core::header::Problem;

impl Ambiguity {
    /// Answers 400 with a problem that names the ambiguous part.
    pub fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.problem()));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// The problem as JSON.
    pub fn problem(&self) -> String {
        format!(
            "{{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"detail\":\"{self}\"}}"
        )
    }
}
