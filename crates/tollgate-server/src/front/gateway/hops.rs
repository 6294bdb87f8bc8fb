//! How many servers a request may still pass.

use super::settle::Invalid;
use hyper::{
    Method,
    header::{HeaderValue, MAX_FORWARDS},
    http::request::Parts,
};

/// Counts this one, where `OPTIONS` and `TRACE` say how many there may be (RFC 9110, section 7.6.2). `true` when the request ends here.
pub(super) fn settle(head: &mut Parts) -> Result<bool, Invalid> {
    if head.method != Method::OPTIONS && head.method != Method::TRACE {
        return Ok(false);
    }
    let said = head.headers.get(MAX_FORWARDS).and_then(|value| value.to_str().ok());
    // What is no number says nothing.
    let Some(left) = said.and_then(|value| value.trim().parse::<u64>().ok()) else {
        return Ok(false);
    };
    match left.checked_sub(1) {
        Some(left) => {
            head.headers.insert(MAX_FORWARDS, HeaderValue::from(left));
            Ok(false)
        }
        // To show a request to whoever sent it is to show what others have added to it.
        None if head.method == Method::TRACE => Err(Invalid::Trace),
        None => Ok(true),
    }
}
