//! `Retry-After` in both forms; dates are compared with a calendar that walks day by day.

use crate::header::{FieldErrorKind, FieldInstant, parse_retry_after};
use proptest::prelude::*;
use std::string::String;

const NOW_US: u64 = 1_794_744_000_000_000;

fn at(s: u64) -> Result<FieldInstant, crate::header::FieldError> {
    Ok(FieldInstant::AtUs(s * 1_000_000))
}

#[test]
fn delays() {
    let after = |text| parse_retry_after(text, NOW_US).unwrap();
    assert_eq!(after("120"), FieldInstant::AfterUs(120_000_000));
    assert_eq!(after(" 0\t"), FieldInstant::AfterUs(0));
    assert_eq!(after("99999999999999999999999999"), FieldInstant::AfterUs(u64::MAX));
}

#[test]
fn the_three_spellings() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse_retry_after(text, NOW_US), at(784_111_777), "{text}");
    }
    for (text, s) in [
        ("Sun, 15 Nov 2026 12:00:00 GMT", 1_794_744_000),
        ("Sun Nov 15 12:00:00 2026", 1_794_744_000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 31 Dec 1969 23:59:59 GMT", 0),
        ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ] {
        assert_eq!(parse_retry_after(text, NOW_US), at(s), "{text}");
    }
}

#[test]
fn two_digits_are_the_latest_year_within_fifty_ahead() {
    // Now is noon on 15 November 2026.
    for (text, s) in [
        ("Sunday, 15-Nov-26 12:00:00 GMT", 1_794_744_000),
        ("Sunday, 15-Nov-76 00:00:00 GMT", 3_372_624_000),
        ("Sunday, 17-Nov-76 00:00:00 GMT", 217_036_800),
        ("Thursday, 01-Jan-70 00:00:01 GMT", 3_155_760_001),
        ("Tuesday, 01-Jan-80 00:00:00 GMT", 315_532_800),
        ("Tuesday, 29-Feb-00 00:00:00 GMT", 951_782_400),
    ] {
        assert_eq!(parse_retry_after(text, NOW_US), at(s), "{text}");
    }
    let late_2099_us = 4_102_000_000_000_000;
    let new_year_2101 = parse_retry_after("Saturday, 01-Jan-01 00:00:00 GMT", late_2099_us);
    assert_eq!(new_year_2101, at(4_133_980_800));
    assert!(parse_retry_after("Saturday, 01-Jan-01 00:00:00 GMT", u64::MAX).is_ok());
}

#[test]
fn what_is_neither_is_refused() {
    for text in [
        "",
        "-1",
        "1.5",
        "1s",
        "soon",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov \u{e9}",
        "Sun, ",
    ] {
        let error = parse_retry_after(text, NOW_US).expect_err(text);
        assert_eq!(error.kind, FieldErrorKind::NotADelayOrDate);
    }
    let long = String::from_utf8(std::vec![b'1'; 10_000]).unwrap();
    assert_eq!(parse_retry_after(&long, 0).unwrap_err().kind, FieldErrorKind::TooLong);
}

/// Computes year, month and day by walking from 1970, and the weekday by counting from a Thursday.
fn calendar(mut days: u64) -> (u64, usize, u64, usize) {
    let weekday = (days + 3) as usize % 7;
    let mut year = 1970;
    loop {
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let lengths = [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in lengths.into_iter().enumerate() {
            if days < length {
                return (year, month, days + 1, weekday);
            }
            days -= length;
        }
        year += 1;
    }
}

proptest! {
    #[test]
    fn dates_agree_with_a_walked_calendar(s in 0..253_402_300_800_u64, near in 0..50 * 365 * 86_400_u64) {
        const DAYS: [&str; 7] =
            ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let spell = |s: u64| {
            let (year, month, day, weekday) = calendar(s / 86_400);
            let month = &MONTHS[month * 3..month * 3 + 3];
            let time = std::format!("{:02}:{:02}:{:02}", s / 3_600 % 24, s / 60 % 60, s % 60);
            let (long, short) = (DAYS[weekday], &DAYS[weekday][..3]);
            [
                std::format!("{short}, {day:02} {month} {year:04} {time} GMT"),
                std::format!("{short} {month} {day:2} {time} {year:04}"),
                std::format!("{long}, {day:02}-{month}-{:02} {time} GMT", year % 100),
            ]
        };
        let [imf, asctime, _] = spell(s);
        prop_assert_eq!(parse_retry_after(&imf, NOW_US), at(s));
        prop_assert_eq!(parse_retry_after(&asctime, NOW_US), at(s));
        // Two digits of a year are enough for a clock up to fifty years before the date, and less
        // than that after it.
        let [.., rfc_850] = spell(s);
        let before_us = s.saturating_sub(near) * 1_000_000;
        let after_us = (s + near * 49 / 50) * 1_000_000;
        prop_assert_eq!(parse_retry_after(&rfc_850, before_us), at(s));
        prop_assert_eq!(parse_retry_after(&rfc_850, after_us), at(s));
    }
}
