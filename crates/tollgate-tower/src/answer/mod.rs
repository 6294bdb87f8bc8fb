//! From a verdict to the head of an answer, and to a whole answer where it refuses.

mod accept;
mod merge;
mod refusal;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;
use tollgate::{Row, Source, Verdict};
use tollgate_core::Numbers;
use tollgate_core::header::{self, Fields, Profile, Scope, Unit};

pub use refusal::Refusal;
pub(crate) use refusal::refuse;

/// The fields of an answer: what clients are told about their quota.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    fields: Vec<(HeaderName, HeaderValue)>,
    profiles: SmallVec<[Profile; 2]>,
    /// What is left of the tightest limit; `None` where no limit is shown.
    remaining: Option<u64>,
    source: Option<Source>,
}

impl Shown {
    /// Those of an answer given at `now_us`. `fields` is a buffer to keep between answers.
    pub fn new(
        verdict: &Verdict<'_>,
        profiles: &[Profile],
        now_us: u64,
        fields: &mut Fields,
    ) -> Self {
        fields.clear();
        let rows: SmallVec<[header::Row<'_>; 4]> =
            verdict.rows.iter().filter(|row| is_shown(row)).map(shown).collect();
        for &profile in profiles {
            header::render(profile, &rows, now_us, fields);
        }
        if !verdict.allowed
            && let Some(retry_after_us) = verdict.retry_after_us
        {
            fields.push_retry_after(retry_after_us);
        }
        Self {
            fields: values(fields),
            profiles: profiles.into(),
            remaining: header::tightest(&rows).map(|row| row.remaining),
            source: (!verdict.source.is_usual()).then_some(verdict.source),
        }
    }

    /// Writes them all, in place of any of the same name.
    pub fn write(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.fields {
            headers.insert(name.clone(), value.clone());
        }
        self.write_source(headers);
    }

    fn write_source(&self, headers: &mut HeaderMap) {
        if let Some(source) = self.source {
            headers.insert(SOURCE, HeaderValue::from_static(source.as_str()));
        }
    }
}

const SOURCE: HeaderName = HeaderName::from_static("x-tollgate-source");

/// The values in one allocation.
fn values(fields: &Fields) -> Vec<(HeaderName, HeaderValue)> {
    if fields.is_empty() {
        return Vec::new();
    }
    let text: Bytes = fields.iter().map(|(_, value)| value).collect::<String>().into();
    let mut start = 0;
    let whole = fields.iter().filter_map(|(name, value)| {
        let value = text.slice(start..start + value.len());
        start += value.len();
        Some((name_of(name), HeaderValue::from_maybe_shared(value).ok()?))
    });
    whole.collect()
}

/// A field that a profile writes, by the name it writes.
fn name_of(name: &'static str) -> HeaderName {
    match name {
        "RateLimit" => HeaderName::from_static("ratelimit"),
        "RateLimit-Policy" => HeaderName::from_static("ratelimit-policy"),
        "RateLimit-Limit" => HeaderName::from_static("ratelimit-limit"),
        "RateLimit-Remaining" => HeaderName::from_static("ratelimit-remaining"),
        "RateLimit-Reset" => HeaderName::from_static("ratelimit-reset"),
        "X-RateLimit-Limit" => HeaderName::from_static("x-ratelimit-limit"),
        "X-RateLimit-Remaining" => HeaderName::from_static("x-ratelimit-remaining"),
        "X-RateLimit-Reset" => HeaderName::from_static("x-ratelimit-reset"),
        "X-RateLimit-Policy" => HeaderName::from_static("x-ratelimit-policy"),
        "Retry-After" => http::header::RETRY_AFTER,
        other => HeaderName::from_bytes(other.as_bytes()).unwrap_or(SOURCE),
    }
}

/// 503 where a limit that cannot be decided refuses, 429 otherwise.
pub(crate) fn status(verdict: &Verdict<'_>) -> u16 {
    let failed = |row: &Row<'_>| row.refuses() && row.source == Source::FailClosed;
    if verdict.rows.iter().any(failed) { 503 } else { 429 }
}

/// A shadow limit decides nothing, and one that is not disclosed keeps its figures to itself.
fn is_shown(row: &Row<'_>) -> bool {
    row.enforced() && row.limit.disclose
}

fn shown<'a>(row: &Row<'a>) -> header::Row<'a> {
    let unit = match row.limit.numbers {
        Some(Numbers::Concurrency(_)) => Unit::ConcurrentRequests,
        _ => Unit::Requests,
    };
    let scope = if row.limit.key.is_empty() { Scope::Shared } else { Scope::User };
    let row_of = header::Row::new(&row.limit.name, row.window_us, &row.outcome);
    row_of.unit(unit).scope(scope).bucket(row.bucket)
}
