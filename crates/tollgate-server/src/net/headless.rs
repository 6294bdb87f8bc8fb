//! Answers to `HEAD`: what hyper does about them in HTTP/1 only.

use hyper::{
    Method, Version,
    body::Body,
    header::{CONTENT_LENGTH, HeaderValue},
};

/// Whether an answer must have no body, and nobody else sees to it.
pub(super) fn wants_head<B>(request: &hyper::Request<B>) -> bool {
    request.method() == Method::HEAD && request.version() == Version::HTTP_2
}

/// Says how long the body is that is about to be left out.
pub(super) fn tell_length<B: Body>(response: &mut hyper::Response<B>) {
    if let Some(length @ 1..) = response.body().size_hint().exact() {
        let headers = response.headers_mut();
        headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
}
