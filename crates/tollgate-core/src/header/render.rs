//! Rows to fields, one function per generation.

use super::profile::name;
use super::{Fields, Profile, Row, US_PER_S, Unit, tightest, write};
use alloc::string::String;

/// Appends the fields of `profile` for `rows` in their order. `draft-11` lists every row; the others have room
/// for the [`tightest`] only. Without rows there is nothing to say and nothing is written.
pub fn render(profile: Profile, rows: &[Row<'_>], now_us: u64, fields: &mut Fields) {
    let Some(row) = tightest(rows) else { return };
    match profile {
        Profile::Draft11 => draft_11(rows, fields),
        Profile::Draft7 => draft_7(row, fields),
        Profile::Draft6 => draft_6(row, fields),
        Profile::XRateLimitEpoch => x_ratelimit(row, reset_at_s(row, now_us), fields),
        Profile::XRateLimitDelta => x_ratelimit(row, reset_after_s(row), fields),
        Profile::GitHub => github(row, now_us, fields),
        Profile::Discord => discord(row, now_us, fields),
        Profile::None => {}
    }
}

fn draft_11(rows: &[Row<'_>], fields: &mut Fields) {
    fields.push_policies(rows, |out| {
        list(out, rows, |out, row| {
            parameter(out, ";q=", row.limit);
            if row.unit != Unit::Requests {
                out.push_str(";qu=");
                write::string(out, row.unit.name());
            }
            window(out, row);
        });
    });
    fields.push(name::RATELIMIT, |out| {
        list(out, rows, |out, row| {
            parameter(out, ";r=", row.remaining);
            if let Some(more_after_us) = row.more_after_us {
                parameter(out, ";t=", more_after_us.div_ceil(US_PER_S));
            }
        });
    });
}

fn draft_7(row: &Row<'_>, fields: &mut Fields) {
    fields.push(name::POLICY, |out| unnamed_policy(out, row));
    fields.push(name::RATELIMIT, |out| {
        parameter(out, "limit=", row.limit);
        parameter(out, ", remaining=", row.remaining);
        parameter(out, ", reset=", reset_after_s(row));
    });
}

fn draft_6(row: &Row<'_>, fields: &mut Fields) {
    fields.push(name::POLICY, |out| unnamed_policy(out, row));
    fields.push(name::LIMIT, |out| write::uint(out, row.limit));
    fields.push(name::REMAINING, |out| write::uint(out, row.remaining));
    fields.push(name::RESET, |out| write::uint(out, reset_after_s(row)));
}

fn x_ratelimit(row: &Row<'_>, reset_s: u64, fields: &mut Fields) {
    fields.push(name::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(name::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(name::X_RESET, |out| write::uint(out, reset_s));
    fields.push(name::X_POLICY, |out| unnamed_policy(out, row));
}

fn github(row: &Row<'_>, now_us: u64, fields: &mut Fields) {
    fields.push(name::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(name::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(name::X_USED, |out| write::uint(out, row.limit.saturating_sub(row.remaining)));
    fields.push(name::X_RESET, |out| write::uint(out, reset_at_s(row, now_us)));
    fields.push(name::X_RESOURCE, |out| write::text(out, row.name));
}

fn discord(row: &Row<'_>, now_us: u64, fields: &mut Fields) {
    let reset_at_us = now_us.saturating_add(row.reset_after_us);
    fields.push(name::X_LIMIT, |out| write::uint(out, row.limit));
    fields.push(name::X_REMAINING, |out| write::uint(out, row.remaining));
    fields.push(name::X_RESET, |out| write::decimal_seconds(out, reset_at_us));
    fields.push(name::X_RESET_AFTER, |out| write::decimal_seconds(out, row.reset_after_us));
    fields.push(name::X_BUCKET, |out| write::hex(out, row.bucket));
    if row.refused {
        fields.push(name::X_SCOPE, |out| out.push_str(row.scope.name()));
    }
}

/// The rows as list members: the name, what `parameters` writes, and the partition.
fn list(out: &mut String, rows: &[Row<'_>], parameters: impl Fn(&mut String, &Row<'_>)) {
    for (i, row) in rows.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write::string(out, row.name);
        parameters(out, row);
        if let Some(partition) = row.partition {
            out.push_str(";pk=");
            write::binary(out, partition);
        }
    }
}

/// `100;w=60`: how a policy looked before policies had names.
fn unnamed_policy(out: &mut String, row: &Row<'_>) {
    write::uint(out, row.limit);
    window(out, row);
}

fn window(out: &mut String, row: &Row<'_>) {
    if let Some(window_us) = row.window_us {
        // A window of zero seconds is malformed, so one shorter than a second counts as a second.
        parameter(out, ";w=", window_us.div_ceil(US_PER_S).max(1));
    }
}

fn parameter(out: &mut String, key: &str, value: u64) {
    out.push_str(key);
    write::uint(out, value);
}

fn reset_after_s(row: &Row<'_>) -> u64 {
    row.reset_after_us.div_ceil(US_PER_S)
}

/// The instant rounded up, which is not now rounded plus the wait rounded: that one wobbles by a second.
fn reset_at_s(row: &Row<'_>, now_us: u64) -> u64 {
    now_us.saturating_add(row.reset_after_us).div_ceil(US_PER_S)
}
