//! The rate limit headers of a layer with one quota: rendered once, but for two numbers.

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
    /// The headers of a template; `None` if it is no header value. They are shared by all layers
    /// with the same policy and never freed, so that a response counts no reference to them. The
    /// policies of a program are few.
    pub(crate) fn of(template: RowTemplate) -> Option<&'static Self> {
        static KNOWN: Mutex<Vec<&'static QuotaHeaders>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(|known| known.template == template) {
            return Some(known);
        }
        template.with_limit(0, None, HeaderValue::from_bytes).ok()?;
        HeaderValue::from_bytes(template.policy()).ok()?;
        // The value of a static text: its clones count nothing either.
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
        // Moved only now: reading a word waits for its bytes that were just written.
        if let Ok(limit) = limit {
            headers.insert(RATELIMIT, limit);
        }
    }
}
