//! What a body says that it is.

use hyper::{HeaderMap, header::CONTENT_TYPE};

/// Whether it says that it is JSON, in whatever case and with whatever parameters.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return false };
    let essence = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}
