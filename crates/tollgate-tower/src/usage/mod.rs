//! Costs that a response reports, read from its body as it streams.
//!
//! Nothing of the answer is kept: a reader remembers how far along the path it is, and the last
//! figure.

mod json;
mod sse;
#[cfg(test)]
mod tests;

use json::JsonPathReader;
use sse::SseReader;

/// Media types of JSON in lines.
const JSON_LINES: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
/// How other media types of JSON end.
const JSON_SUFFIXES: [&str; 3] = ["/json", "+json", "/json-seq"];

/// The figure that a field is. As in a body, one too large to be counted is the largest there is.
pub(crate) fn parse_cost(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add((digit - b'0').into());
    is_whole.then(|| digits.iter().fold(0, add))
}

/// Reads one figure out of a body.
#[derive(Debug)]
pub(crate) enum UsageReader {
    /// JSON, one value or many.
    Json(JsonPathReader),
    /// A stream of events with JSON in them.
    Events(SseReader),
}

impl UsageReader {
    /// For a body with these headers; `None` where its content cannot be read as it passes.
    pub(crate) fn new<'h>(path: &str, header: &impl Fn(&str) -> Option<&'h [u8]>) -> Option<Self> {
        let text = |name| header(name).and_then(|value| str::from_utf8(value).ok());
        if text("content-encoding")
            .is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"))
        {
            return None;
        }
        let kind = text("content-type")?.split(';').next()?.trim();
        if kind.eq_ignore_ascii_case("text/event-stream") {
            return Some(Self::Events(SseReader::new(path)));
        }
        let is_json = JSON_LINES.iter().any(|lines| kind.eq_ignore_ascii_case(lines))
            || JSON_SUFFIXES.iter().any(|suffix| {
                let start = kind.len().wrapping_sub(suffix.len());
                kind.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
            });
        is_json.then(|| Self::Json(JsonPathReader::new(path)))
    }

    /// The next bytes of the body.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        match self {
            Self::Json(json) => json.read(bytes),
            Self::Events(events) => events.read(bytes),
        }
    }

    /// The last figure so far. A body may end right behind its number.
    pub(crate) fn found(&self) -> Option<u64> {
        match self {
            Self::Json(json) => json.found(),
            Self::Events(events) => events.found(),
        }
    }
}
