//! Rows to headers, in a reusable buffer. Current profiles are written from
//! [cached parts](super::render_cache); each older profile has its own function.

use super::profile::name::{Name, line};
use super::render_cache::{CachedBytes, RenderCache, unnamed_policy, write_numbers};
use super::row::tightest_at;
use super::{Profile, Row, US_PER_S, retry_after_seconds, write};
use alloc::vec::Vec;
use core::ops::Range;

/// Rendered headers: all lines in one buffer, and the range of each value in it. A reused buffer
/// allocates only while it grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderLines {
    lines: Vec<u8>,
    places: Vec<Place>,
    known: RenderCache,
}

impl HeaderLines {
    /// Creates an empty buffer, which allocates on the first write.
    pub const fn new() -> Self {
        Self { lines: Vec::new(), places: Vec::new(), known: RenderCache::new() }
    }

    /// Removes the headers, and keeps the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.places.clear();
    }

    /// The number of headers.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no headers.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The headers as lines of HTTP/1.1, with names in lower case, such as `ratelimit: "a";r=1`,
    /// each with its end.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The name of each header, and the range of its value in [`lines`](Self::lines), in order of
    /// writing.
    pub fn places(&self) -> impl ExactSizeIterator<Item = (&'static str, Range<usize>)> {
        self.places.iter().cloned()
    }

    /// The name and value of each header, in order of writing. Values are printable ASCII.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &str)> {
        self.places()
            .map(|(name, place)| (name, str::from_utf8(&self.lines[place]).unwrap_or_default()))
    }

    /// Adds `RateLimit-Policy` and `RateLimit` with values that are rendered already.
    pub fn push_rendered(&mut self, policy: &[u8], limit: &[u8]) {
        self.push(line::POLICY, |out| out.extend_from_slice(policy));
        self.push(line::RATELIMIT, |out| out.extend_from_slice(limit));
    }

    /// Adds `Retry-After`, in whole seconds, rounded up.
    pub fn push_retry_after(&mut self, retry_after_us: u64) {
        self.push(line::RETRY_AFTER, |out| write::uint(out, retry_after_seconds(retry_after_us)));
    }

    /// Adds `X-Tollgate-Source`.
    pub fn push_source(&mut self, source: &str) {
        let name = Name { text: "X-Tollgate-Source", opening: "x-tollgate-source: " };
        self.push(name, |out| out.extend_from_slice(source.as_bytes()));
    }

    /// Finds or renders the cached parts of these rows, for the headers that are added next.
    #[inline]
    pub(super) fn select_cached<'r, R>(
        &mut self,
        rows: &'r [R],
        row_of: impl Fn(&'r R) -> Row<'r> + Copy,
    ) {
        self.known.select(rows.iter().map(row_of));
    }

    /// Adds `RateLimit-Policy` and `RateLimit`, lists with a member for each row. The rows must be
    /// those of the last [`select_cached`](Self::select_cached).
    #[inline]
    pub(super) fn push_lists<'r>(&mut self, rows: impl Iterator<Item = Row<'r>>) {
        let Self { lines, places, known } = self;
        let Some(known) = known.last() else { return };
        let policy = put(lines, line::POLICY, &known.lists);
        let start = lines.len();
        let mut at = start;
        lines.resize(start + known.members_max, 0);
        for (known, row) in known.rows().iter().zip(rows) {
            let numbers = at + known.member.len();
            lines[at..numbers].copy_from_slice(&known.member);
            at = write_numbers(lines, numbers, row.remaining, row.more_after_us);
        }
        lines.truncate(at);
        let value_end = at + known.list_end.value.end;
        lines.extend_from_slice(&known.list_end.bytes);
        places.extend([policy, (line::RATELIMIT.text, start..value_end)]);
    }

    /// Adds lines with limit, remaining, reset and policy of one row of the last
    /// [`select_cached`](Self::select_cached).
    pub(super) fn push_numbers(&mut self, at: usize, remaining: u64, reset_s: u64) {
        let Self { lines, places, known } = self;
        known.select_reset(reset_s);
        let reset = &known.reset;
        let Some(known) = known.last().and_then(|set| set.rows().get(at)) else { return };
        let limit = put(lines, line::X_LIMIT, &known.limit_line);
        let start = lines.len();
        write::uint(lines, remaining);
        let remaining = (line::X_REMAINING.text, start..lines.len());
        let reset = put(lines, line::X_RESET, reset);
        let policy = put(lines, line::X_POLICY, &known.policy_line);
        // Together, so that the vector checks its capacity once.
        places.extend([limit, remaining, reset, policy]);
    }

    /// Adds a header. `write` appends its value.
    pub(super) fn push(&mut self, name: Name, write: impl FnOnce(&mut Vec<u8>)) {
        self.lines.extend_from_slice(name.opening.as_bytes());
        let start = self.lines.len();
        write(&mut self.lines);
        self.places.push((name.text, start..self.lines.len()));
        self.lines.extend_from_slice(b"\r\n");
    }
}

/// A header's name, and the range of its value.
type Place = (&'static str, Range<usize>);

/// Appends a cached line with the value of this header.
#[inline]
fn put(lines: &mut Vec<u8>, name: Name, piece: &CachedBytes) -> Place {
    let at = lines.len();
    lines.extend_from_slice(&piece.bytes);
    (name.text, at + piece.value.start..at + piece.value.end)
}

/// Appends the headers of `profile` for `rows`. `draft-11` lists every row; other profiles show the
/// [`tightest`](super::tightest) one. Without rows, nothing is written.
pub fn render(profile: Profile, rows: &[Row<'_>], now_us: u64, lines: &mut HeaderLines) {
    render_all(&[profile], rows, |row| *row, now_us, lines);
}

/// [`render`] for each of these profiles. `row_of` reads the row of each value in `rows`, which
/// saves copies. Returns the value with the [`tightest`](super::tightest) row.
#[inline]
pub fn render_all<'r, R>(
    profiles: &[Profile],
    rows: &'r [R],
    row_of: impl Fn(&'r R) -> Row<'r> + Copy,
    now_us: u64,
    lines: &mut HeaderLines,
) -> Option<&'r R> {
    let at = tightest_at(rows.iter().map(row_of))?;
    let tightest = rows.get(at)?;
    let mut is_seen = false;
    let mut known = |lines: &mut HeaderLines| {
        if !core::mem::replace(&mut is_seen, true) {
            lines.select_cached(rows, row_of);
        }
    };
    for profile in profiles {
        match profile {
            Profile::Draft11 => {
                known(lines);
                lines.push_lists(rows.iter().map(row_of));
            }
            Profile::XRateLimitEpoch | Profile::XRateLimitDelta => {
                known(lines);
                let row = row_of(tightest);
                let reset_s = match profile {
                    Profile::XRateLimitEpoch => reset_at_s(&row, now_us),
                    _ => reset_after_s(&row),
                };
                lines.push_numbers(at, row.remaining, reset_s);
            }
            Profile::Draft7 => draft_7(&row_of(tightest), lines),
            Profile::Draft6 => draft_6(&row_of(tightest), lines),
            Profile::RateLimit => numbers(&row_of(tightest), lines),
            Profile::GitHub => github(&row_of(tightest), now_us, lines),
            Profile::Discord => discord(&row_of(tightest), now_us, lines),
            Profile::None => {}
        }
    }
    Some(tightest)
}

fn draft_7(row: &Row<'_>, lines: &mut HeaderLines) {
    lines.push(line::POLICY, |out| unnamed_policy(out, row));
    lines.push(line::RATELIMIT, |out| {
        write::parameter(out, b"limit=", row.limit);
        write::parameter(out, b", remaining=", row.remaining);
        write::parameter(out, b", reset=", reset_after_s(row));
    });
}

fn draft_6(row: &Row<'_>, lines: &mut HeaderLines) {
    lines.push(line::POLICY, |out| unnamed_policy(out, row));
    numbers(row, lines);
}

fn numbers(row: &Row<'_>, lines: &mut HeaderLines) {
    lines.push(line::LIMIT, |out| write::uint(out, row.limit));
    lines.push(line::REMAINING, |out| write::uint(out, row.remaining));
    lines.push(line::RESET, |out| write::uint(out, reset_after_s(row)));
}

fn github(row: &Row<'_>, now_us: u64, lines: &mut HeaderLines) {
    lines.push(line::X_LIMIT, |out| write::uint(out, row.limit));
    lines.push(line::X_REMAINING, |out| write::uint(out, row.remaining));
    lines.push(line::X_USED, |out| write::uint(out, row.limit.saturating_sub(row.remaining)));
    lines.push(line::X_RESET, |out| write::uint(out, reset_at_s(row, now_us)));
    lines.push(line::X_RESOURCE, |out| write::text(out, row.name));
}

fn discord(row: &Row<'_>, now_us: u64, lines: &mut HeaderLines) {
    let reset_at_us = now_us.saturating_add(row.reset_after_us);
    lines.push(line::X_LIMIT, |out| write::uint(out, row.limit));
    lines.push(line::X_REMAINING, |out| write::uint(out, row.remaining));
    lines.push(line::X_RESET, |out| write::decimal_seconds(out, reset_at_us));
    lines.push(line::X_RESET_AFTER, |out| write::decimal_seconds(out, row.reset_after_us));
    lines.push(line::X_BUCKET, |out| write::hex(out, row.bucket));
    if row.refused {
        lines.push(line::X_SCOPE, |out| out.extend_from_slice(row.scope.name().as_bytes()));
    }
}

fn reset_after_s(row: &Row<'_>) -> u64 {
    row.reset_after_us.div_ceil(US_PER_S)
}

/// The instant of the reset, rounded up once. Rounding now and the wait separately would make it
/// jump by a second.
fn reset_at_s(row: &Row<'_>, now_us: u64) -> u64 {
    now_us.saturating_add(row.reset_after_us).div_ceil(US_PER_S)
}
