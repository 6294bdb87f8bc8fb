//! The names of the fields of an answer, ready to send.

use http::HeaderName;

/// The name of a field that a profile writes. Known ones cost nothing; a new one is read from its
/// text.
pub fn header_name(name: &'static str) -> Option<HeaderName> {
    macro_rules! known {
        ($($text:literal => $lower:literal,)*) => {
            Some(match name {
                $($text => const { HeaderName::from_static($lower) },)*
                _ => return HeaderName::from_bytes(name.as_bytes()).ok(),
            })
        };
    }
    known! {
        "RateLimit-Policy" => "ratelimit-policy",
        "RateLimit" => "ratelimit",
        "X-RateLimit-Limit" => "x-ratelimit-limit",
        "X-RateLimit-Remaining" => "x-ratelimit-remaining",
        "X-RateLimit-Reset" => "x-ratelimit-reset",
        "X-RateLimit-Policy" => "x-ratelimit-policy",
        "Retry-After" => "retry-after",
        "X-Tollgate-Source" => "x-tollgate-source",
        "RateLimit-Limit" => "ratelimit-limit",
        "RateLimit-Remaining" => "ratelimit-remaining",
        "RateLimit-Reset" => "ratelimit-reset",
        "X-RateLimit-Reset-After" => "x-ratelimit-reset-after",
        "X-RateLimit-Used" => "x-ratelimit-used",
        "X-RateLimit-Resource" => "x-ratelimit-resource",
        "X-RateLimit-Bucket" => "x-ratelimit-bucket",
        "X-RateLimit-Scope" => "x-ratelimit-scope",
    }
}
