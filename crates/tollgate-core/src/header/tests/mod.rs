//! Tests of the headers: worked examples, choices, parsing, round trips and hostile input.

mod dates;
mod digits;
mod hostile;
mod reading;
mod round_trip;
mod rules;
mod worked;

use super::{HeaderLines, Profile, Row, Scope, Unit, render};
use std::string::{String, ToString};
use std::vec::Vec;

/// 12:00:18 on 15 November 2026, the clock of the worked examples.
const NOON_18_US: u64 = 1_794_744_018_000_000;

/// The row of the first worked example, which tests modify.
fn row(name: &str) -> Row<'_> {
    Row {
        name,
        limit: 100,
        unit: Unit::Requests,
        window_us: Some(60_000_000),
        remaining: 59,
        more_after_us: Some(42_000_000),
        reset_after_us: 42_000_000,
        refused: false,
        retry_after_us: Some(0),
        partition: None,
        bucket: 0x0123_4567_89ab_cdef,
        scope: Scope::User,
    }
}

fn rendered(profile: Profile, rows: &[Row<'_>], now_us: u64) -> Vec<(String, String)> {
    let mut fields = HeaderLines::new();
    render(profile, rows, now_us, &mut fields);
    fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// The headers as lines of a response head.
fn lines(profile: Profile, rows: &[Row<'_>], now_us: u64) -> String {
    rendered(profile, rows, now_us)
        .iter()
        .map(|(name, value)| std::format!("{name}: {value}\r\n"))
        .collect()
}
