//! What a body says that it is.

/// Whether a `Content-Type` is that of JSON, in whatever case and with whatever parameters.
pub(super) fn is_json(content_type: Option<&[u8]>) -> bool {
    let Some(value) = content_type else { return false };
    // As most clients write it.
    if value == b"application/json" {
        return true;
    }
    let essence = value.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}
