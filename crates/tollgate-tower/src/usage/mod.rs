//! Costs that a response reports, read from its body as it streams.
//!
//! Bodies are not buffered: a reader keeps only its position on the path, and the last figure.

mod json;
mod sse;
#[cfg(test)]
mod tests;

use json::JsonPathReader;
use sse::SseReader;

/// Media types of JSON lines.
const JSON_LINES: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
/// Suffixes of other JSON media types.
const JSON_SUFFIXES: [&str; 3] = ["/json", "+json", "/json-seq"];

/// Parses a cost in a header. A number that is too large saturates, as in a body.
pub(crate) fn parse_cost(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add((digit - b'0').into());
    is_whole.then(|| digits.iter().fold(0, add))
}

/// Reads one figure from a body.
#[derive(Debug)]
pub(crate) enum UsageReader {
    /// One or more JSON values.
    Json(JsonPathReader),
    /// Server-sent events that contain JSON.
    Events(SseReader),
}

impl UsageReader {
    /// Creates a reader for a body with these headers; `None` if the body is encoded, or
    /// neither JSON nor events.
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

    /// Reads the next bytes of the body.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        match self {
            Self::Json(json) => json.read(bytes),
            Self::Events(events) => events.read(bytes),
        }
    }

    /// The last figure so far, including a number at the very end of the body.
    pub(crate) fn found(&self) -> Option<u64> {
        match self {
            Self::Json(json) => json.found(),
            Self::Events(events) => events.found(),
        }
    }
}
