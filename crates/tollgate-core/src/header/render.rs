//! Rows to fields, one function per generation.

use super::profile::name::line;
use super::{Fields, Profile, Row, US_PER_S, Unit, tightest, write};
use alloc::vec::Vec;

/// Appends the fields of `profile` for `rows` in their order. `draft-11` lists every row; the others have room
/// for the [`tightest`] only. Without rows there is nothing to say and nothing is written.
pub fn render(profile: Profile, rows: &[Row<'_>], now_us: u64, fields: &mut Fields) {
    if profile == Profile::Draft11 && !rows.is_empty() {
        return draft_11(rows, fields);
    }
    let Some(row) = tightest(rows) else { return };
    match profile {
        Profile::Draft7 => draft_7(row, fields),
        Profile::Draft6 => draft_6(row, fields),
        Profile::XRateLimitEpoch => x_ratelimit(row, reset_at_s(row, now_us), fields),
        Profile::XRateLimitDelta => x_ratelimit(row, reset_after_s(row), fields),
        Profile::GitHub => github(row, now_us, fields),
        Profile::Discord => discord(row, now_us, fields),
        Profile::Draft11 | Profile::None => {}
    }
}

fn draft_11(rows: &[Row<'_>], fields: &mut Fields) {
    let policy = |out: &mut Vec<u8>, row: &Row<'_>| {
        parameter(out, ";q=", row.limit);
        if row.unit != Unit::Requests {
            out.extend_from_slice(b";qu=");
            write::string(out, row.unit.name());
        }
        window(out, row);
    };
    let rest = |out: &mut Vec<u8>, row: &Row<'_>| {
        parameter(out, ";r=", row.remaining);
        if let Some(more_after_us) = row.more_after_us {
            parameter(out, ";t=", more_after_us.div_ceil(US_PER_S));
        }
    };
    fields.push_lists(rows, policy, rest);
}

fn draft_7(row: &Row<'_>, fields: &mut Fields) {
    fields.push(line::POLICY, |out| unnamed_policy(out, row));
    fields.push(line::RATELIMIT, |out| {
        parameter(out, "limit=", row.limit);
        parameter(out, ", remaining=", row.remaining);
        parameter(out, ", reset=", reset_after_s(row));
    });
}

fn draft_6(row: &Row<'_>, fields: &mut Fields) {
    fields.push(line::POLICY, |out| unnamed_policy(out, row));
    fields.push(line::LIMIT, |out| write::uint(out, row.limit));
    fields.push(line::REMAINING, |out| write::uint(out, row.remaining));
    fields.push(line::RESET, |out| write::uint(out, reset_after_s(row)));
}

fn x_ratelimit(row: &Row<'_>, reset_s: u64, fields: &mut Fields) {
    fields.push(line::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(line::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(line::X_RESET, |out| write::uint(out, reset_s));
    fields.push(line::X_POLICY, |out| unnamed_policy(out, row));
}

fn github(row: &Row<'_>, now_us: u64, fields: &mut Fields) {
    fields.push(line::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(line::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(line::X_USED, |out| write::uint(out, row.limit.saturating_sub(row.remaining)));
    fields.push(line::X_RESET, |out| write::uint(out, reset_at_s(row, now_us)));
    fields.push(line::X_RESOURCE, |out| write::text(out, row.name));
}

fn discord(row: &Row<'_>, now_us: u64, fields: &mut Fields) {
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

/// `100;w=60`: how a policy looked before policies had names.
fn unnamed_policy(out: &mut Vec<u8>, row: &Row<'_>) {
    write::uint(out, row.limit);
    window(out, row);
}

fn window(out: &mut Vec<u8>, row: &Row<'_>) {
    if let Some(window_us) = row.window_us {
        // A window of zero seconds is malformed, so one shorter than a second counts as a second.
        parameter(out, ";w=", window_us.div_ceil(US_PER_S).max(1));
    }
}

fn parameter(out: &mut Vec<u8>, key: &str, value: u64) {
    out.extend_from_slice(key.as_bytes());
    write::uint(out, value);
}

fn reset_after_s(row: &Row<'_>) -> u64 {
    row.reset_after_us.div_ceil(US_PER_S)
}

/// The instant rounded up, which is not now rounded plus the wait rounded: that one wobbles by a second.
fn reset_at_s(row: &Row<'_>, now_us: u64) -> u64 {
    now_us.saturating_add(row.reset_after_us).div_ceil(US_PER_S)
}
