//! Rendered headers parse to the same numbers, for every profile.

use super::rendered;
use crate::header::{
    FieldInstant, LimitItem, ParsedHeaders, PolicyItem, Profile, Row, RowTemplate, Scope, Unit,
    parse, tightest,
};
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

const CLAMP: u64 = 999_999_999_999_999;

/// A row with owned text.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    name: String,
    partition: Option<Vec<u8>>,
    row: Row<'static>,
}

impl Owned {
    pub(super) fn row(&self) -> Row<'_> {
        Row { name: &self.name, partition: self.partition.as_deref(), ..self.row }
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Requests), Just(Unit::ContentBytes), Just(Unit::ConcurrentRequests)]
}

fn row() -> impl Strategy<Value = Owned> {
    let options = (
        prop::option::of(number()),
        prop::option::of(number()),
        prop::option::of(number()),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
    );
    let params = (number(), number(), number(), any::<u64>());
    let rest = (any::<bool>(), unit(), prop_oneof![Just(Scope::User), Just(Scope::Shared)]);
    // Names begin and end visibly, since HTTP trims spaces at the ends of a value.
    ("[!-~]([ -~]{0,20}[!-~])?", options, params, rest).prop_map(
        |(name, (window_us, more_after_us, retry_after_us, partition), params, rest)| {
            let (limit, remaining, reset_after_us, bucket) = params;
            let (refused, unit, scope) = rest;
            let row = Row {
                name: "",
                limit,
                unit,
                window_us,
                remaining,
                more_after_us,
                reset_after_us,
                refused,
                retry_after_us,
                partition: None,
                bucket,
                scope,
            };
            Owned { name, partition, row }
        },
    )
}

pub(super) fn rows() -> impl Strategy<Value = Vec<Owned>> {
    prop::collection::vec(row(), 0..6)
}

fn ceil_s(us: u64) -> u64 {
    us / 1_000_000 + u64::from(!us.is_multiple_of(1_000_000))
}

fn whole_seconds(us: u64) -> u64 {
    ceil_s(us).saturating_mul(1_000_000)
}

fn policy(row: &Row<'_>, named: bool) -> PolicyItem {
    PolicyItem {
        name: named.then(|| row.name.into()),
        quota: row.limit.min(CLAMP),
        unit: Some(if named { row.unit } else { Unit::Requests }),
        window_s: row.window_us.map(|us| ceil_s(us).max(1)),
        partition: row.partition.filter(|_| named).map(Into::into),
    }
}

/// The figures that a client should read from the response.
fn expected(profile: Profile, rows: &[Row<'_>], now_us: u64) -> ParsedHeaders {
    let Some(row) = tightest(rows).filter(|_| profile != Profile::None) else {
        return ParsedHeaders::default();
    };
    if profile == Profile::Draft11 {
        let limit = |row: &Row<'_>| LimitItem {
            name: Some(row.name.into()),
            remaining: row.remaining.min(CLAMP),
            reset: row.more_after_us.map(|us| FieldInstant::AfterUs(whole_seconds(us))),
            partition: row.partition.map(Into::into),
            ..LimitItem::default()
        };
        return ParsedHeaders {
            policies: rows.iter().map(|row| policy(row, true)).collect(),
            limits: rows.iter().map(limit).collect(),
        };
    }
    let mut item = LimitItem {
        limit: Some(row.limit.min(CLAMP)),
        remaining: row.remaining.min(CLAMP),
        reset: Some(FieldInstant::AfterUs(whole_seconds(row.reset_after_us))),
        ..LimitItem::default()
    };
    if matches!(profile, Profile::XRateLimitEpoch | Profile::GitHub) {
        let at_us = now_us.saturating_add(row.reset_after_us);
        item.reset = Some(FieldInstant::AtUs(whole_seconds(at_us)));
    }
    if profile == Profile::GitHub {
        item.name = Some(row.name.into());
    }
    if profile == Profile::Discord {
        item.reset = Some(FieldInstant::AfterUs(row.reset_after_us));
        item.bucket = Some(std::format!("{:016x}", row.bucket));
        item.scope = row.refused.then_some(row.scope);
    }
    let has_policy = !matches!(profile, Profile::GitHub | Profile::Discord | Profile::RateLimit);
    let policies = has_policy.then(|| policy(row, false)).into_iter().collect();
    ParsedHeaders { policies, limits: std::vec![item] }
}

proptest! {
    #[test]
    fn every_profile(owned in rows(), now_us in 0..=crate::MAX_US) {
        let rows: Vec<Row<'_>> = owned.iter().map(Owned::row).collect();
        for profile in Profile::ALL {
            let sent = rendered(profile, &rows, now_us);
            let headers = sent.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let read = parse(profile, headers);
            prop_assert_eq!(read, Ok(expected(profile, &rows, now_us)), "{}", profile.name());
            prop_assert!(sent.iter().all(|(_, value)| value.bytes().all(|b| matches!(b, b' '..=b'~'))));
        }
    }

    /// A template shows what the row would be rendered as, if its name is short.
    #[test]
    fn templates(owned in row()) {
        let row = Row { partition: None, ..owned.row() };
        let Some(template) = RowTemplate::new(&row) else {
            prop_assert!(row.name.len() > 12, "escapes double a name at most");
            return Ok(());
        };
        let limit = template.with_limit(row.remaining, row.more_after_us, <[u8]>::to_vec);
        let sent = rendered(Profile::Draft11, &[row], 0);
        prop_assert_eq!(template.policy(), sent[0].1.as_bytes());
        prop_assert_eq!(limit, sent[1].1.as_bytes());
    }

    /// Splitting a list at its commas over several lines, as proxies do, changes nothing.
    #[test]
    fn split_lines(owned in rows()) {
        let rows: Vec<Row<'_>> = owned.iter().map(Owned::row).collect();
        let whole = rendered(Profile::Draft11, &rows, 0);
        let apart: Vec<_> =
            rows.iter().flat_map(|row| rendered(Profile::Draft11, &[*row], 0)).collect();
        let read = |sent: &[(String, String)]| {
            parse(Profile::Draft11, sent.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        };
        prop_assert_eq!(read(&whole), read(&apart));
    }
}
