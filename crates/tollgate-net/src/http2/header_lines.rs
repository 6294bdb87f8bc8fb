//! Converts HTTP/2 headers to lines, and lines to HTTP/2 headers.

use super::ResponseBody;
use crate::{HeaderSpan, HttpResponse, http1::push_header};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_LENGTH, COOKIE, HeaderName, HeaderValue};
use std::cell::Cell;

/// Marks counters never-indexed, so that they do not evict useful HPACK entries: their values
/// rarely repeat. The first response indexes them for their names, to which later responses refer.
pub(super) fn mark_never_indexed(headers: &mut HeaderMap, sent_counters: &Cell<bool>) {
    let is_first = !sent_counters.get();
    for (name, value) in headers.iter_mut() {
        if is_counter(name.as_str()) {
            sent_counters.set(true);
            // The `http` crate writes sensitive values never-indexed.
            value.set_sensitive(!is_first);
        }
    }
}

/// Whether a header's value changes with each response. Limits and policies do not change.
fn is_counter(name: &str) -> bool {
    let name = name.strip_prefix("x-").unwrap_or(name);
    name.strip_prefix("ratelimit")
        .is_some_and(|rest| matches!(rest, "" | "-remaining" | "-reset" | "-reset-after" | "-used"))
}

/// Writes headers as lines. Joins `cookie` headers into one line (RFC 9113, section 8.2.3), and
/// trims values.
pub fn headers_to_lines(headers: &HeaderMap, bytes: &mut Vec<u8>, lines: &mut Vec<HeaderSpan>) {
    bytes.clear();
    lines.clear();
    let size = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    bytes.reserve(size);
    for name in headers.keys() {
        let mut values = headers.get_all(name).iter().map(|value| value.as_bytes().trim_ascii());
        if *name == COOKIE {
            let crumbs: Vec<&[u8]> = values.collect();
            push(name, &crumbs.join(&b"; "[..]), bytes, lines);
        } else {
            values.by_ref().for_each(|value| push(name, value, bytes, lines));
        }
    }
}

fn push(name: &HeaderName, value: &[u8], bytes: &mut Vec<u8>, lines: &mut Vec<HeaderSpan>) {
    let start = bytes.len();
    push_header(name.as_ref(), value, bytes);
    let colon = start + name.as_str().len();
    let end = bytes.len() - 2;
    lines.push(HeaderSpan::new(&bytes[start..colon], &bytes[colon + 2..end], bytes));
}

/// Converts an answer to an HTTP/2 response.
pub(super) fn response(answer: &mut HttpResponse) -> hyper::Response<ResponseBody> {
    let body = match answer.stream.take() {
        Some(stream) => ResponseBody::stream(stream),
        None => ResponseBody::new(Bytes::copy_from_slice(&answer.body)),
    };
    let mut response = hyper::Response::new(body);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    append_lines_to_map(&answer.lines, headers);
    if let Some(length) = answer.length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Appends header lines to a map. All values are slices of one copy of the lines.
pub fn append_lines_to_map(lines: &[u8], headers: &mut HeaderMap) {
    let lines = Bytes::copy_from_slice(lines);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', &lines) {
        let line = lines.slice(start..end.saturating_sub(1));
        start = end + 1;
        let Some(colon) = memchr::memchr(b':', &line) else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_maybe_shared(line.slice((colon + 2).min(line.len())..));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
}

#[cfg(test)]
mod tests;
