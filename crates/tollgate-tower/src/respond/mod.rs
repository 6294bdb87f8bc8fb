//! Verdicts to responses: rate limit headers, and the body of a refusal.

mod merge;
mod quota_headers;
mod refusal;
#[cfg(test)]
mod tests;

pub(crate) use quota_headers::QuotaHeaders;
pub(crate) use refusal::build_refusal;
pub use refusal::{Refusal, problem_of};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Deref;
use std::ptr;
use tollgate::engine::{BufferPool, Row, Source, Verdict};
use tollgate_core::LimitParams;
use tollgate_core::header::{self, HeaderLines, Profile, Scope, Unit};

/// The rate limit headers of a response.
#[derive(Clone, Debug, Default)]
pub struct RateLimitHeaders {
    header_lines: PooledLines,
    profiles: SmallVec<[Profile; 2]>,
    /// The remaining units of the tightest limit; `None` if no limit is shown.
    remaining: Option<u64>,
}

/// Rendered headers, in a buffer that the next response uses again.
#[derive(Clone, Debug, Default)]
struct PooledLines(Option<Box<HeaderLines>>);

thread_local! {
    static HEADER_LINES: BufferPool<HeaderLines> = const { BufferPool::new() };
}

static NONE: HeaderLines = HeaderLines::new();

impl Deref for PooledLines {
    type Target = HeaderLines;

    fn deref(&self) -> &HeaderLines {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl Drop for PooledLines {
    fn drop(&mut self) {
        if let Some(mut header_lines) = self.0.take() {
            header_lines.clear();
            // A thread that is ending keeps no buffer.
            HEADER_LINES.try_with(|pool| pool.put(header_lines)).ok();
        }
    }
}

impl RateLimitHeaders {
    /// The headers of a response at `now_us`.
    pub fn new(verdict: &Verdict<'_>, profiles: &[Profile], now_us: u64) -> Self {
        let Verdict { allowed, retry_after_us, source, rows, .. } = verdict;
        let retry_after_us = retry_after_us.filter(|_| !allowed);
        Self::of_rows(rows, *source, retry_after_us, profiles, now_us)
    }

    /// The headers of draft-11 that are rendered already, for a limit with this many units left.
    #[cold]
    fn of_rendered(policy: &HeaderValue, limit: &HeaderValue, remaining: u64) -> Self {
        let mut header_lines = HEADER_LINES.with(BufferPool::take);
        header_lines.push_rendered(policy.as_bytes(), limit.as_bytes());
        let header_lines = PooledLines(Some(header_lines));
        let profiles = SmallVec::from_slice(&[Profile::Draft11]);
        Self { header_lines, profiles, remaining: Some(remaining) }
    }

    #[inline]
    fn of_rows(
        rows: &[Row<'_>],
        source: Source,
        retry_after_us: Option<u64>,
        profiles: &[Profile],
        now_us: u64,
    ) -> Self {
        if profiles.is_empty() && retry_after_us.is_none() && source.is_usual() {
            return Self::default();
        }
        let mut header_lines = HEADER_LINES.with(BufferPool::take);
        let remaining =
            render_rows(rows, source, retry_after_us, profiles, now_us, &mut header_lines);
        let header_lines = PooledLines(Some(header_lines));
        Self { header_lines, profiles: SmallVec::from_slice(profiles), remaining }
    }

    /// Writes all headers, in place of those with the same name.
    pub fn write(&self, headers: &mut HeaderMap) {
        for (name, value) in self.values() {
            headers.insert(name, value);
        }
    }

    /// Writes all headers as lines of HTTP/1, names in lower case: `ratelimit: "a";r=1\r\n`.
    #[inline]
    pub fn write_lines(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.header_lines.lines());
    }

    /// Names and values.
    fn values(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let header_lines = &*self.header_lines;
        header_lines.places().filter_map(move |(name, place)| {
            Some((header_name(name)?, header_value(name, &header_lines.lines()[place])?))
        })
    }
}

/// How many values a thread remembers: those of a few limits that alternate.
const REMEMBERED_MAX: usize = 8;

thread_local! {
    /// Values that all responses of a limit share, and what to replace next.
    static REMEMBERED: RefCell<(Vec<HeaderValue>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

/// A header value. A value that depends only on the limit is created once and then shared.
fn header_value(name: &'static str, value: &[u8]) -> Option<HeaderValue> {
    let is_shared = matches!(
        name,
        "RateLimit-Policy" | "X-RateLimit-Policy" | "RateLimit-Limit" | "X-RateLimit-Limit"
    );
    if !is_shared {
        return HeaderValue::from_bytes(value).ok();
    }
    REMEMBERED.with_borrow_mut(|(known, next)| {
        if let Some(known) = known.iter().find(|known| known.as_bytes() == value) {
            return Some(known.clone());
        }
        let value = HeaderValue::from_bytes(value).ok()?;
        if known.len() < REMEMBERED_MAX {
            known.push(value.clone());
        } else {
            known[*next] = value.clone();
            *next = (*next + 1) % REMEMBERED_MAX;
        }
        Some(value)
    })
}

/// Renders the headers of a response at `now_us`: those of the profiles, `Retry-After` if a wait
/// helps, and an unusual source. Returns the remaining units of the tightest limit; `None` if no
/// limit is shown.
pub fn render_headers(
    verdict: &Verdict<'_>,
    profiles: &[Profile],
    now_us: u64,
    header_lines: &mut HeaderLines,
) -> Option<u64> {
    header_lines.clear();
    let retry_after_us = verdict.retry_after_us.filter(|_| !verdict.allowed);
    render_rows(&verdict.rows, verdict.source, retry_after_us, profiles, now_us, header_lines)
}

fn render_rows(
    rows: &[Row<'_>],
    source: Source,
    retry_after_us: Option<u64>,
    profiles: &[Profile],
    now_us: u64,
    header_lines: &mut HeaderLines,
) -> Option<u64> {
    let merged: SmallVec<[Row<'_>; 4]>;
    let is_alone = |(n, row): (usize, &Row<'_>)| {
        is_shown(row) && !rows[..n].iter().any(|before| ptr::eq(before.limit, row.limit))
    };
    let rows = if rows.iter().enumerate().all(is_alone) {
        rows
    } else {
        merged = shown_once(rows);
        &merged
    };
    let tightest = header::render_all(profiles, rows, header_row, now_us, header_lines);
    let remaining = tightest.map(|row| row.outcome.remaining);
    if let Some(retry_after_us) = retry_after_us {
        header_lines.push_retry_after(retry_after_us);
    }
    if !source.is_usual() {
        header_lines.push_source(source.as_str());
    }
    remaining
}

/// The rows that clients may see. A path with several readings has a row for each, and a list must
/// name a limit once.
#[inline(never)]
fn shown_once<'g>(rows: &[Row<'g>]) -> SmallVec<[Row<'g>; 4]> {
    let mut shown: SmallVec<[Row<'g>; 4]> = SmallVec::new();
    for row in rows.iter().filter(|row| is_shown(row)) {
        match shown.iter_mut().find(|known| ptr::eq(known.limit, row.limit)) {
            Some(known) => *known = *Row::tightest([&*known, row]).unwrap_or(known),
            None => shown.push(*row),
        }
    }
    shown
}

const SOURCE: HeaderName = HeaderName::from_static("x-tollgate-source");

/// The status of a refusal: 503 if the request was shed or a limit refuses because the store
/// failed, else 429.
pub fn refusal_status(verdict: &Verdict<'_>) -> u16 {
    if matches!(verdict.source, Source::Shed | Source::FailClosed) { 503 } else { 429 }
}

/// Whether clients may see the row. Shadow limits and undisclosed limits are hidden.
fn is_shown(row: &Row<'_>) -> bool {
    row.enforced() && row.limit.disclose
}

#[inline(always)]
pub(crate) fn header_row<'a>(row: &Row<'a>) -> header::Row<'a> {
    let unit = match row.limit.params {
        Some(LimitParams::Concurrency(_)) => Unit::ConcurrentRequests,
        _ => Unit::Requests,
    };
    let scope = if row.limit.key.is_empty() { Scope::Shared } else { Scope::User };
    let row_of = header::Row::new(&row.limit.name, row.window_us, &row.outcome);
    row_of.unit(unit).scope(scope).bucket(row.bucket)
}

/// The name of a header that a profile writes. Known names cost nothing; others are parsed.
pub fn header_name(name: &'static str) -> Option<HeaderName> {
    macro_rules! known {
        ($($text:literal => $lower:literal,)*) => {
            Some(match name {
                $($text => const { HeaderName::from_static($lower) },)*
                _ => return HeaderName::from_bytes(name.as_bytes()).ok(),
            })
        };
    }
    known! {
        "RateLimit-Policy" => "ratelimit-policy",
        "RateLimit" => "ratelimit",
        "X-RateLimit-Limit" => "x-ratelimit-limit",
        "X-RateLimit-Remaining" => "x-ratelimit-remaining",
        "X-RateLimit-Reset" => "x-ratelimit-reset",
        "X-RateLimit-Policy" => "x-ratelimit-policy",
        "Retry-After" => "retry-after",
        "X-Tollgate-Source" => "x-tollgate-source",
        "RateLimit-Limit" => "ratelimit-limit",
        "RateLimit-Remaining" => "ratelimit-remaining",
        "RateLimit-Reset" => "ratelimit-reset",
        "X-RateLimit-Reset-After" => "x-ratelimit-reset-after",
        "X-RateLimit-Used" => "x-ratelimit-used",
        "X-RateLimit-Resource" => "x-ratelimit-resource",
        "X-RateLimit-Bucket" => "x-ratelimit-bucket",
        "X-RateLimit-Scope" => "x-ratelimit-scope",
    }
}
