//! Appends status lines and header lines, to responses and to requests to upstreams.

use crate::head::{WORD, lowercase_word};
use hyper::StatusCode;

/// Appends a status line. An empty reason is replaced by the standard one.
pub fn push_status(status: StatusCode, reason: &[u8], out: &mut Vec<u8>) {
    let reason = match reason {
        [] => status.canonical_reason().unwrap_or_default().as_bytes(),
        reason => reason,
    };
    for part in [b"HTTP/1.1 ", status.as_str().as_bytes(), b" ", reason, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Appends a header line, the name in lower case as in HTTP/2.
#[inline]
pub fn push_header(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    push_lowercase(name, out);
    push_line(b": ", value, out);
}

/// Appends `opening`, the value and the line end.
#[inline]
pub fn push_line<const N: usize>(opening: &[u8; N], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(opening);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a name in lower case, eight bytes at a time, as most names have eight or more. The last
/// word may overlap the one before it.
fn push_lowercase(name: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(name);
    let name = &mut out[start..];
    name.as_chunks_mut::<WORD>().0.iter_mut().for_each(|word| *word = lowercase_word(*word));
    match name.last_chunk_mut::<WORD>() {
        Some(last) => *last = lowercase_word(*last),
        None => name.make_ascii_lowercase(),
    }
}
