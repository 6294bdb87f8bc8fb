//! Tests of the figures that are shown, and of their rounding.

use super::{NOON_18_US, lines, rendered, row};
use crate::header::{
    HeaderLines, Profile, Row, Scope, Unit, render, render_all, retry_after_seconds, tightest,
    valid_name,
};
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

fn refused(name: &str, retry_after_us: Option<u64>) -> Row<'_> {
    Row { refused: true, retry_after_us, remaining: 0, ..row(name) }
}

fn left(name: &str, remaining: u64) -> Row<'_> {
    Row { remaining, ..row(name) }
}

#[test]
fn the_tightest_refuses_longest_or_has_least() {
    let name = |rows: &[Row<'_>]| tightest(rows).map(|row| String::from(row.name)).unwrap();
    assert_eq!(name(&[left("a", 0), refused("b", Some(5)), refused("c", Some(9))]), "c");
    assert_eq!(name(&[refused("a", Some(u64::MAX)), refused("b", None)]), "b", "null is largest");
    assert_eq!(name(&[refused("a", None), refused("b", None)]), "a");
    assert_eq!(name(&[refused("a", Some(7)), refused("b", Some(7))]), "a", "ties in given order");
    assert_eq!(name(&[left("a", 3), left("b", 2), left("c", 2)]), "b", "ties in given order");
    assert_eq!(tightest(&[]), None);
}

#[test]
fn one_value_profiles_show_the_tightest() {
    let rows = [left("a", 3), Row { limit: 7, ..left("b", 2) }];
    for profile in Profile::ALL {
        let both = rendered(profile, &rows, NOON_18_US);
        let tightest_alone = rendered(profile, &rows[1..], NOON_18_US);
        assert_eq!(both == tightest_alone, profile != Profile::Draft11, "{}", profile.name());
        assert_eq!(rendered(profile, &[], NOON_18_US), []);
    }
}

#[test]
fn what_is_sent_is_what_fields_says() {
    let rows = [refused("a", Some(1))];
    for profile in Profile::ALL {
        let sent = rendered(profile, &rows, NOON_18_US);
        let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, profile.fields(), "{}", profile.name());
        assert_eq!(Profile::parse(profile.name()), Some(profile));
    }
    assert_eq!(Profile::parse("draft-8"), None);
}

#[test]
fn profiles_that_share_a_field_are_known() {
    let shared = Profile::shared_field;
    assert_eq!(shared(Profile::Draft11, Profile::XRateLimitEpoch), None);
    assert_eq!(shared(Profile::Draft11, Profile::Draft7), Some("RateLimit-Policy"));
    assert_eq!(shared(Profile::Draft11, Profile::Draft6), Some("RateLimit-Policy"));
    assert_eq!(shared(Profile::Draft11, Profile::RateLimit), None);
    assert_eq!(shared(Profile::Draft7, Profile::RateLimit), None);
    assert_eq!(shared(Profile::Draft6, Profile::RateLimit), Some("RateLimit-Limit"));
    assert_eq!(shared(Profile::GitHub, Profile::XRateLimitDelta), Some("X-RateLimit-Limit"));
    assert_eq!(shared(Profile::None, Profile::None), None);
}

#[test]
fn seconds_round_up_and_the_instant_before_the_difference() {
    let mut row = row("a");
    row.window_us = Some(1_000);
    row.more_after_us = Some(1);
    row.reset_after_us = 41_500_000;
    let now_us = NOON_18_US + 500_000;
    let rows = [row];
    assert_eq!(
        lines(Profile::Draft11, &rows, now_us),
        "RateLimit-Policy: \"a\";q=100;w=1\r\nRateLimit: \"a\";r=59;t=1\r\n"
    );
    assert!(lines(Profile::XRateLimitDelta, &rows, now_us).contains("-Reset: 42\r\n"));
    // 18.5 s and 41.5 s make a whole minute; rounding either first would add a second.
    assert!(lines(Profile::XRateLimitEpoch, &rows, now_us).contains("-Reset: 1794744060\r\n"));
    assert!(lines(Profile::GitHub, &rows, now_us + 1).contains("-Reset: 1794744061\r\n"));
}

#[test]
fn without_a_window_there_is_no_w() {
    let rows = [Row { window_us: None, more_after_us: None, ..row("a") }];
    assert_eq!(
        lines(Profile::Draft11, &rows, 0),
        "RateLimit-Policy: \"a\";q=100\r\nRateLimit: \"a\";r=59\r\n"
    );
    assert!(lines(Profile::XRateLimitDelta, &rows, 0).ends_with("X-RateLimit-Policy: 100\r\n"));
    assert!(lines(Profile::Draft7, &rows, 0).starts_with("RateLimit-Policy: 100\r\n"));
}

#[test]
fn extremes_are_clamped_to_fifteen_digits() {
    let mut row = row("a");
    (row.limit, row.remaining) = (u64::MAX, u64::MAX);
    (row.window_us, row.more_after_us) = (Some(u64::MAX), Some(u64::MAX));
    row.reset_after_us = u64::MAX;
    let value = "RateLimit: \"a\";r=999999999999999;t=18446744073710\r\n";
    assert!(lines(Profile::Draft11, &[row], u64::MAX).ends_with(value));
    let value = "limit=999999999999999, remaining=999999999999999, reset=18446744073710\r\n";
    assert!(lines(Profile::Draft7, &[row], u64::MAX).ends_with(value));
    let text = lines(Profile::Discord, &[row], u64::MAX);
    assert!(text.contains("X-RateLimit-Reset: 18446744073709.551615\r\n"), "{text}");
}

#[test]
fn scope_only_on_refusals() {
    assert!(!lines(Profile::Discord, &[row("a")], 0).contains("Scope"));
    let row = refused("a", Some(1));
    assert!(lines(Profile::Discord, &[row], 0).ends_with("X-RateLimit-Scope: user\r\n"));
    let row = row.scope(Scope::Shared).bucket(0xf);
    let text = lines(Profile::Discord, &[row], 0);
    let end = "X-RateLimit-Bucket: 000000000000000f\r\nX-RateLimit-Scope: shared\r\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn discord_seconds_are_exact_and_trimmed() {
    for (reset_after_us, text) in [
        (0, "0"),
        (1, "0.000001"),
        (100_000, "0.1"),
        (1_010_000, "1.01"),
        (60_000_000, "60"),
        (123_456_789, "123.456789"),
    ] {
        let rows = [Row { reset_after_us, ..row("a") }];
        let sent = rendered(Profile::Discord, &rows, 0);
        assert_eq!((sent[2].1.as_str(), sent[3].1.as_str()), (text, text));
    }
}

#[test]
fn a_denial_never_says_zero_seconds() {
    for (us, s) in [(0, 1), (1, 1), (200_000, 1), (1_000_000, 1), (1_000_001, 2)] {
        assert_eq!(retry_after_seconds(us), s);
    }
    assert_eq!(retry_after_seconds(u64::MAX), 18_446_744_073_710);
}

#[test]
fn names_are_printable_ascii() {
    assert!(valid_name("login/ip+username ~\"\\"));
    for bad in ["", "a\nb", "caf\u{e9}", "\u{7f}", "tab\t"] {
        assert!(!valid_name(bad), "{bad:?}");
    }
    // Even an invalid name cannot start a new line.
    for profile in Profile::ALL {
        for (_, value) in rendered(profile, &[row("a\r\nSet-Cookie: \u{e9}")], 0) {
            assert!(valid_name(&value), "{value:?}");
        }
    }
}

/// A reused buffer must not show figures of an earlier response, whatever it caches.
#[test]
fn a_buffer_that_was_used_writes_what_a_new_one_does() {
    let base = row("a");
    let tight = Row { remaining: 1, ..row("c") };
    let answers = [
        vec![base],
        vec![base],
        vec![Row { remaining: 1, ..base }],
        vec![Row { name: "b", ..base }],
        vec![Row { limit: 7, ..base }],
        vec![Row { unit: Unit::ContentBytes, ..base }],
        vec![Row { window_us: None, ..base }],
        vec![Row { partition: Some(b"k"), ..base }],
        vec![Row { partition: Some(b"l"), ..base }],
        vec![],
        vec![base, tight],
        vec![tight, base],
        vec![base, row("c")],
        vec![row("a\"")],
        vec![base.partition(b"key"), tight],
        vec![base.partition(b"other"), tight],
    ];
    let both = [Profile::Draft11, Profile::XRateLimitEpoch];
    let alone = Profile::ALL.iter().map(core::slice::from_ref);
    for profiles in alone.chain([&both[..], &[Profile::XRateLimitDelta, Profile::Draft11]]) {
        let mut used = HeaderLines::new();
        // Repeats the rows, so that each occurs again after as many others as the cache holds, and
        // after more.
        for rows in answers.iter().chain(&answers[..4]).chain(answers.iter().rev()) {
            used.clear();
            let tightest = render_all(profiles, rows, |row| *row, NOON_18_US, &mut used);
            assert_eq!(tightest, super::super::tightest(rows));
            let mut new = HeaderLines::new();
            for profile in profiles {
                render(*profile, rows, NOON_18_US, &mut new);
            }
            assert_eq!(used, new, "{profiles:?} {rows:?}");
        }
    }
}

#[test]
fn lines_begin_with_the_name_in_lower_case() {
    for name in crate::header::profile::name::line::ALL {
        assert_eq!(name.opening, format!("{}: ", name.text.to_ascii_lowercase()));
    }
}

#[test]
fn lines_are_the_fields() {
    let rows = [row("a"), Row { remaining: 1, ..row("b") }];
    for profile in Profile::ALL {
        let mut fields = HeaderLines::new();
        render(profile, &rows, 1_794_744_018_000_000, &mut fields);
        let lines: String = fields
            .iter()
            .map(|(name, value)| format!("{}: {value}\r\n", name.to_ascii_lowercase()))
            .collect();
        assert_eq!(str::from_utf8(fields.lines()).unwrap(), lines);
    }
}
