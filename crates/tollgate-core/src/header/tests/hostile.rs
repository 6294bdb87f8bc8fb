//! Arbitrary and almost valid input: nothing panics, and accepted input can be written and read
//! again.

use super::round_trip::{Owned, rows};
use super::{rendered, row};
use crate::header::{
    FieldInstant, LimitItem, ParsedHeaders, Profile, Row, parse, parse_policy, parse_ratelimit,
    parse_retry_after, valid_name,
};
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

/// Characters with a meaning in headers, so that random text gets past the first byte.
const ALPHABET: &str = "[\"\\\\;:=,.*()@%?+/ \t\u{e9}raqtwpku019A-]{0,60}";

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), ALPHABET.prop_map(String::from)]
}

/// Parses `lines` in every way, and checks the invariants of accepted input.
fn read_all(lines: &[String]) -> Result<(), TestCaseError> {
    let values = || lines.iter().map(String::as_str);
    if let Ok(limits) = parse_ratelimit(values()) {
        check_written_again(&limits)?;
    }
    for policy in parse_policy(values()).unwrap_or_default() {
        prop_assert_ne!(policy.window_s, Some(0));
        prop_assert!(policy.quota <= 999_999_999_999_999);
        prop_assert!(policy.name.is_none_or(|name| name.is_empty() || valid_name(&name)));
    }
    for line in values() {
        for now_us in [0, super::NOON_18_US, u64::MAX] {
            let _ = parse_retry_after(line, now_us);
        }
        for profile in Profile::ALL {
            for field in profile.fields() {
                let _ = parse(profile, [(*field, line), ("X-RateLimit-Remaining", "1")]);
            }
        }
    }
    Ok(())
}

/// Named items can be rendered in canonical form and read again.
fn check_written_again(limits: &[LimitItem]) -> Result<(), TestCaseError> {
    let named = |item: &&LimitItem| item.name.is_some();
    let rows: Vec<Row<'_>> = limits
        .iter()
        .filter(named)
        .map(|item| Row {
            remaining: item.remaining,
            more_after_us: item.reset.map(|reset| reset.after_us(0)),
            partition: item.partition.as_deref(),
            ..row(item.name.as_deref().unwrap_or_default())
        })
        .collect();
    let sent = rendered(Profile::Draft11, &rows, 0);
    let again = parse_ratelimit(sent.iter().skip(1).map(|(_, value)| value.as_str())).unwrap();
    let saturated = |item: &LimitItem| item.reset == Some(FieldInstant::AfterUs(u64::MAX));
    if !limits.iter().any(saturated) {
        prop_assert_eq!(again, limits.iter().filter(named).cloned().collect::<Vec<_>>());
    }
    Ok(())
}

/// One change to a text, at a position given as a fraction of its length.
#[derive(Clone, Debug)]
enum Mutation {
    Cut(u16),
    Remove(u16),
    Insert(u16, String),
    Replace(u16, String),
    Double(u16, u16),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let piece = || {
        prop_oneof![
            "[\"\\\\;:=,.*()@%?+/ \t-]",
            "[a-zA-Z0-9]",
            Just(String::from("999999999999999999999")),
            Just(String::from(";r=")),
            Just(String::from("\u{10ffff}")),
        ]
    };
    prop_oneof![
        any::<u16>().prop_map(Mutation::Cut),
        any::<u16>().prop_map(Mutation::Remove),
        (any::<u16>(), piece()).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (any::<u16>(), piece()).prop_map(|(at, piece)| Mutation::Replace(at, piece)),
        (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Mutation::Double(from, to)),
    ]
}

impl Mutation {
    fn apply(&self, text: &mut String) {
        let place = |at: u16| {
            let at = usize::from(at) * text.len() / usize::from(u16::MAX);
            (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
        };
        match self {
            Self::Cut(at) => text.truncate(place(*at)),
            Self::Remove(at) if place(*at) < text.len() => drop(text.remove(place(*at))),
            Self::Remove(_) => {}
            Self::Insert(at, piece) => text.insert_str(place(*at), piece),
            Self::Replace(at, piece) => {
                let at = place(*at);
                let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
                text.replace_range(at..end, piece);
            }
            Self::Double(from, to) => {
                let (from, to) = (place(*from).min(place(*to)), place(*from).max(place(*to)));
                let piece = String::from(&text[from..to]);
                text.insert_str(to, &piece);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text(lines in prop::collection::vec(text(), 0..4)) {
        read_all(&lines)?;
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&[String::from_utf8_lossy(&bytes).into_owned()])?;
    }

    #[test]
    fn almost_fields(owned in rows(), mutations in prop::collection::vec(mutation(), 1..4)) {
        let rows: Vec<Row<'_>> = owned.iter().map(Owned::row).collect();
        for profile in Profile::ALL {
            let mut sent = rendered(profile, &rows, super::NOON_18_US);
            let mut values: Vec<String> = Vec::new();
            for (_, value) in &mut sent {
                mutations.iter().for_each(|mutation| mutation.apply(value));
                values.push(value.clone());
            }
            read_all(&values)?;
            let headers = sent.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let ParsedHeaders { limits, .. } = parse(profile, headers).unwrap_or_default();
            prop_assert!(limits.len() <= rows.len() * 8 + 1);
        }
    }

    #[test]
    fn almost_dates(mutations in prop::collection::vec(mutation(), 1..4)) {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let mut date = String::from(date);
            mutations.iter().for_each(|mutation| mutation.apply(&mut date));
            read_all(&[date])?;
        }
    }
}
