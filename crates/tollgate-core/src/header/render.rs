//! Rows to headers. Current profiles are written from [cached parts](super::render_cache); each
//! older profile has its own function.

use super::profile::name::line;
use super::render_cache::unnamed_policy;
use super::row::tightest_at;
use super::{HeaderLines, Profile, Row, US_PER_S, write};

/// Appends the headers of `profile` for `rows`. `draft-11` lists every row; other profiles show the
/// [`tightest`](super::tightest) one. Without rows, nothing is written.
pub fn render(profile: Profile, rows: &[Row<'_>], now_us: u64, fields: &mut HeaderLines) {
    render_all(&[profile], rows, |row| *row, now_us, fields);
}

/// [`render`] for each of these profiles. `row_of` reads the row of each value in `rows`, which
/// saves copies. Returns the value with the [`tightest`](super::tightest) row.
#[inline]
pub fn render_all<'r, R>(
    profiles: &[Profile],
    rows: &'r [R],
    row_of: impl Fn(&'r R) -> Row<'r> + Copy,
    now_us: u64,
    fields: &mut HeaderLines,
) -> Option<&'r R> {
    let at = tightest_at(rows.iter().map(row_of))?;
    let tightest = rows.get(at)?;
    let mut is_seen = false;
    let mut known = |fields: &mut HeaderLines| {
        if !core::mem::replace(&mut is_seen, true) {
            fields.select_cached(rows, row_of);
        }
    };
    for profile in profiles {
        match profile {
            Profile::Draft11 => {
                known(fields);
                fields.push_lists(rows.iter().map(row_of));
            }
            Profile::XRateLimitEpoch | Profile::XRateLimitDelta => {
                known(fields);
                let row = row_of(tightest);
                let reset_s = match profile {
                    Profile::XRateLimitEpoch => reset_at_s(&row, now_us),
                    _ => reset_after_s(&row),
                };
                fields.push_numbers(at, row.remaining, reset_s);
            }
            Profile::Draft7 => draft_7(&row_of(tightest), fields),
            Profile::Draft6 => draft_6(&row_of(tightest), fields),
            Profile::RateLimit => numbers(&row_of(tightest), fields),
            Profile::GitHub => github(&row_of(tightest), now_us, fields),
            Profile::Discord => discord(&row_of(tightest), now_us, fields),
            Profile::None => {}
        }
    }
    Some(tightest)
}

fn draft_7(row: &Row<'_>, fields: &mut HeaderLines) {
    fields.push(line::POLICY, |out| unnamed_policy(out, row));
    fields.push(line::RATELIMIT, |out| {
        write::parameter(out, b"limit=", row.limit);
        write::parameter(out, b", remaining=", row.remaining);
        write::parameter(out, b", reset=", reset_after_s(row));
    });
}

fn draft_6(row: &Row<'_>, fields: &mut HeaderLines) {
    fields.push(line::POLICY, |out| unnamed_policy(out, row));
    numbers(row, fields);
}

fn numbers(row: &Row<'_>, fields: &mut HeaderLines) {
    fields.push(line::LIMIT, |out| write::uint(out, row.limit));
    fields.push(line::REMAINING, |out| write::uint(out, row.remaining));
    fields.push(line::RESET, |out| write::uint(out, reset_after_s(row)));
}

fn github(row: &Row<'_>, now_us: u64, fields: &mut HeaderLines) {
    fields.push(line::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(line::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(line::X_USED, |out| write::uint(out, row.limit.saturating_sub(row.remaining)));
    fields.push(line::X_RESET, |out| write::uint(out, reset_at_s(row, now_us)));
    fields.push(line::X_RESOURCE, |out| write::text(out, row.name));
}

fn discord(row: &Row<'_>, now_us: u64, fields: &mut HeaderLines) {
    let reset_at_us = now_us.saturating_add(row.reset_after_us);
    fields.push(line::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(line::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(line::X_RESET, |out| write::decimal_seconds(out, reset_at_us));
    fields.push(line::X_RESET_AFTER, |out| write::decimal_seconds(out, row.reset_after_us));
    fields.push(line::X_BUCKET, |out| write::hex(out, row.bucket));
    if row.refused {
        fields.push(line::X_SCOPE, |out| out.extend_from_slice(row.scope.name().as_bytes()));
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
