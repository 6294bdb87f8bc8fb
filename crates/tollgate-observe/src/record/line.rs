//! Truncates and escapes texts of requests for log lines.

use crate::escape::escape_json;
use serde::{Serialize, Serializer};
use std::fmt::Write;

/// Limit of a text; longer texts are truncated.
pub(super) const TEXT_BYTES_MAX: usize = 1024;

/// Truncates a text to [`TEXT_BYTES_MAX`] bytes, at a character boundary.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Appends a text between quotes as Apache and nginx do. Quotes, backslashes and bytes outside
/// printable ASCII become `\xHH`. An empty text becomes `-`.
pub(super) fn push_quoted(out: &mut String, text: &[u8]) {
    if text.is_empty() {
        return out.push('-');
    }
    for byte in text {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => push_byte(out, *byte),
            _ => out.push((*byte).into()),
        }
    }
}

fn push_byte(out: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\x{byte:02X}");
}

/// Serializes the value of a header. Bytes that are not UTF-8 become `\xHH`.
pub(super) fn as_text<S: Serializer>(
    value: &Option<Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut text = String::new();
    for chunk in value.as_deref().unwrap_or_default().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| push_byte(&mut text, *byte));
    }
    serializer.serialize_str(&text)
}

/// Serializes a record as a line of JSON, with its line end.
pub(super) fn json_line(record: &impl Serialize) -> String {
    // Texts and numbers always serialize.
    escape_json(&serde_json::to_string(record).unwrap_or_default()) + "\n"
}

/// Whether a text is valid as `X-Request-Id`: short and printable.
pub(super) fn is_request_id(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
