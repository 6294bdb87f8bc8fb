//! The rate limit headers of a layer with one quota. Only two numbers change between responses.

use super::RateLimitHeaders;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::{Mutex, PoisonError};
use tollgate_core::header::RowTemplate;

/// The headers of responses to requests that one quota admitted.
#[derive(Debug)]
pub(crate) struct QuotaHeaders {
    template: RowTemplate,
    policy: HeaderValue,
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

impl QuotaHeaders {
    /// The headers of a template; `None` if the template is not a valid header value. All layers
    /// with the same policy share them, and they are never freed. So a response needs no reference
    /// count. A program has few policies.
    pub(crate) fn of(template: RowTemplate) -> Option<&'static Self> {
        static KNOWN: Mutex<Vec<&'static QuotaHeaders>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(|known| known.template == template) {
            return Some(known);
        }
        template.with_limit(0, None, HeaderValue::from_bytes).ok()?;
        HeaderValue::from_bytes(template.policy()).ok()?;
        // A static value: its clones need no reference count either.
        let text: &'static str = String::from_utf8(template.policy().to_vec()).ok()?.leak();
        let policy = HeaderValue::from_static(text);
        let headers: &'static Self = Box::leak(Box::new(Self { template, policy }));
        known.push(headers);
        Some(headers)
    }

    /// Adds both headers to those that a response already has.
    #[inline]
    pub(crate) fn merge(
        &self,
        remaining: u64,
        more_after_us: Option<u64>,
        headers: &mut HeaderMap,
    ) {
        let limit = self.template.with_limit(remaining, more_after_us, HeaderValue::from_bytes);
        if headers.keys().any(|name| RateLimitHeaders::is_rate_limit_header(name.as_str())) {
            let Ok(limit) = limit else { return };
            return RateLimitHeaders::of_rendered(&self.policy, &limit, remaining).merge(headers);
        }
        headers.insert(POLICY, self.policy.clone());
        // Moved only now: the processor would stall if it read words whose bytes were just written.
        if let Ok(limit) = limit {
            headers.insert(RATELIMIT, limit);
        }
    }
}
