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
/// word may overlap the previous one.
fn push_lowercase(name: &[u8], out: &mut Vec<u8>) {
    let end = out.len() + name.len();
    let Some((_, last)) = name.split_last_chunk::<WORD>() else {
        return push_short_lowercase(name, end, out);
    };
    for word in name.as_chunks::<WORD>().0 {
        out.extend_from_slice(&lowercase_word(*word));
    }
    out.truncate(end - WORD);
    out.extend_from_slice(&lowercase_word(*last));
}

/// Appends a name of less than eight bytes in lower case, up to `end`: two halves of a word that
/// may overlap.
fn push_short_lowercase(name: &[u8], end: usize, out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) else {
        return out.extend(name.iter().map(u8::to_ascii_lowercase));
    };
    let [a, b, c, d]: [u8; WORD / 2] = *first;
    let [e, f, g, h]: [u8; WORD / 2] = *last;
    let word = lowercase_word([a, b, c, d, e, f, g, h]);
    let (first, last) = word.split_at(WORD / 2);
    out.extend_from_slice(first);
    out.truncate(end - WORD / 2);
    out.extend_from_slice(last);
}
