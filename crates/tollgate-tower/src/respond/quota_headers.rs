//! The rate limit headers of a layer with one quota: rendered once, but for two numbers.

use super::RateLimitHeaders;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::cell::RefCell;
use tollgate_core::header::RowTemplate;

/// The headers of responses to requests that one quota admitted.
#[derive(Debug)]
pub(crate) struct QuotaHeaders {
    template: RowTemplate,
    policy: HeaderValue,
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

thread_local! {
    static VALUE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl QuotaHeaders {
    /// `None` if the template is no header value.
    pub(crate) fn new(template: RowTemplate) -> Option<Self> {
        let policy = HeaderValue::from_bytes(template.policy()).ok()?;
        Some(Self { template, policy })
    }

    /// Writes both headers, unless the response already has rate limit headers. Returns whether it
    /// wrote.
    pub(crate) fn write(
        &self,
        remaining: u64,
        more_after_us: Option<u64>,
        headers: &mut HeaderMap,
    ) -> bool {
        if headers.keys().any(|name| RateLimitHeaders::is_rate_limit_header(name.as_str())) {
            return false;
        }
        let limit = VALUE.with_borrow_mut(|value| {
            value.clear();
            self.template.write_limit(remaining, more_after_us, value);
            HeaderValue::from_bytes(value)
        });
        let Ok(limit) = limit else { return false };
        headers.insert(POLICY, self.policy.clone());
        headers.insert(RATELIMIT, limit);
        true
    }
}
