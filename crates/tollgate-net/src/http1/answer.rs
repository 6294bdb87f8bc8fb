//! Serializes answers.

use super::parse::is_bodiless;
use crate::HttpResponse;
use crate::date;
use crate::head::{RequestHead, WORD, lowercase_word};
use hyper::{StatusCode, Version, body::Body as _};
use tollgate::store::ProcessClock;
use tollgate_core::push_decimal;

/// The framing of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFraming {
    /// No body, or a body sent with the head.
    NoStream,
    /// Unframed, up to the `Content-Length` or the end of the connection.
    Raw,
    /// In chunks.
    Chunked,
}

/// The facts about the request that the answer's head depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseContext {
    pub(super) version: Version,
    pub(super) is_head: bool,
    /// Whether the client may reuse the connection.
    pub(super) persists: bool,
}

impl ResponseContext {
    pub(super) fn new(head: &RequestHead<'_>, persists: bool) -> Self {
        Self { version: head.version, is_head: head.method == "HEAD", persists }
    }
}

/// Appends the head of an answer, and the body if it is complete. Returns how the rest is sent, and
/// whether the connection persists.
pub(super) fn write_response(
    answer: &HttpResponse,
    asked: ResponseContext,
    out: &mut Vec<u8>,
) -> (ResponseFraming, bool) {
    status_line(answer, out);
    out.extend_from_slice(&answer.lines);
    if !answer.is_dated {
        date::with_line(ProcessClock.now_us(), |line| out.extend_from_slice(line));
    }
    if answer.status == StatusCode::SWITCHING_PROTOCOLS {
        out.extend_from_slice(b"\r\n");
        return (ResponseFraming::NoStream, false);
    }
    let mut persists = asked.persists && !answer.close;
    let is_bodiless = is_bodiless(answer.status);
    let length = match &answer.stream {
        Some(stream) => stream.size_hint().exact(),
        None if answer.body.is_empty() => answer.length.or((!asked.is_head).then_some(0)),
        None => Some(answer.body.len() as u64),
    };
    let sends = match (&answer.stream, length) {
        _ if is_bodiless || asked.is_head => ResponseFraming::NoStream,
        (None, _) => ResponseFraming::NoStream,
        (Some(_), Some(_)) => ResponseFraming::Raw,
        (Some(_), None) if asked.version == Version::HTTP_11 => ResponseFraming::Chunked,
        (Some(_), None) => {
            persists = false;
            ResponseFraming::Raw
        }
    };
    match length {
        Some(_) if answer.status == StatusCode::NO_CONTENT => {}
        // A 304 states the length of the body that it omits, so zero is left out.
        Some(0) if is_bodiless => {}
        Some(length) => push_length(length, out),
        None if sends == ResponseFraming::Chunked => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        None => {}
    }
    match (persists, asked.version) {
        (false, _) => out.extend_from_slice(b"connection: close\r\n"),
        (true, Version::HTTP_10) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (true, _) => {}
    }
    out.extend_from_slice(b"\r\n");
    if !is_bodiless && !asked.is_head && answer.stream.is_none() {
        out.extend_from_slice(&answer.body);
    }
    (sends, persists)
}

fn status_line(answer: &HttpResponse, out: &mut Vec<u8>) {
    if answer.status == StatusCode::OK && answer.reason.is_empty() {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    push_status(answer.status, &answer.reason, out);
}

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

fn push_length(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"content-length: ");
    push_decimal(out, length);
    out.extend_from_slice(b"\r\n");
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
