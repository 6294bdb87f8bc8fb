//! Status and headers of a verdict.

use tollgate::engine::{Row, Source, Verdict};
use tollgate_core::header::{Fields, Profile};
use tollgate_tower::render_headers;

/// 200 when admitted, 503 when a limit that cannot be decided refuses, 429 otherwise.
pub fn status(verdict: &Verdict<'_>) -> u16 {
    let failed = |row: &Row<'_>| row.refuses() && row.source == Source::FailClosed;
    match verdict.allowed {
        true => 200,
        false if verdict.rows.iter().any(failed) => 503,
        false => 429,
    }
}

/// Appends the headers of [`for_each_header`] as lines, names in lower case.
pub fn write_header_lines(
    verdict: &Verdict<'_>,
    profiles: &[Profile],
    now_us: u64,
    fields: &mut Fields,
    out: &mut Vec<u8>,
) {
    fields.clear();
    render_headers(verdict, profiles, now_us, fields);
    out.extend_from_slice(fields.lines());
    if !verdict.source.is_usual() {
        for part in ["x-tollgate-source: ", verdict.source.as_str(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Calls `write` with each header of an answer at `now_us`: those of the configured profiles,
/// `Retry-After` on a refusal that a wait can help, and an unusual source. `fields` is a buffer.
pub fn for_each_header(
    verdict: &Verdict<'_>,
    profiles: &[Profile],
    now_us: u64,
    fields: &mut Fields,
    mut write: impl FnMut(&'static str, &str),
) {
    fields.clear();
    render_headers(verdict, profiles, now_us, fields);
    for (name, value) in fields.iter() {
        write(name, value);
    }
    if !verdict.source.is_usual() {
        write("X-Tollgate-Source", verdict.source.as_str());
    }
}
