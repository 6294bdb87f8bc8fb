//! Parts of lines: texts from requests, cut and escaped.

use std::fmt::Write;

/// Longer texts of a request are cut in records.
pub(super) const TEXT_BYTES_MAX: usize = 1024;

/// At most [`TEXT_BYTES_MAX`] bytes of a text, whole characters only.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Appends a text as Apache and nginx do between quotes: quotes, backslashes and bytes outside
/// printable ASCII as `\xHH`. An empty text is `-`.
pub(super) fn push_quoted(out: &mut String, text: &str) {
    if text.is_empty() {
        return out.push('-');
    }
    for byte in cut(text).bytes() {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\x{byte:02X}");
            }
            _ => out.push(byte.into()),
        }
    }
}

/// The id that a request carries: `X-Request-Id`, if it is short and printable.
pub(super) fn is_request_id(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
