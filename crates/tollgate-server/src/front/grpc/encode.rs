//! What was decided, as Envoy reads it.

use super::wire::{
    DescriptorStatus, Duration, HeaderValue, Kind, ListValue, OK, OVER_LIMIT, RateLimit,
    RateLimitResponse, Struct, Value,
};
use crate::front::http::encode::fields;
use crate::metrics::Outcome;
use smallvec::SmallVec;
use tollgate::{Row, Source, Verdict};
use tollgate_core::header::{Fields, Problem, Profile};
use tollgate_policy::envoy::{Metadata, Rule, Unit};

/// The answer for one request.
pub(super) struct Decided<'a, 'b> {
    pub(super) verdict: &'a Verdict<'a>,
    /// For each descriptor.
    pub(super) shown: &'b [Shown<'a>],
    pub(super) now_us: u64,
}

/// The answer for one descriptor.
pub(super) struct Shown<'a> {
    pub(super) rows: SmallVec<[&'a Row<'a>; 4]>,
    pub(super) rule: Option<&'a Rule>,
    /// Whether its limit came with it, and so has no name.
    pub(super) own: bool,
}

impl Shown<'_> {
    /// Whether one of its limits says no; a shadow limit does not say it here.
    fn is_over(&self) -> bool {
        self.rows.iter().any(|row| row.refuses())
    }

    fn is_quota(&self) -> bool {
        self.rule.is_some_and(|rule| rule.quota && rule.limit.is_some())
    }
}

/// All of it. The code is never UNKNOWN, with which Envoy would let the request pass.
pub(super) fn response(
    decided: &Decided<'_, '_>,
    profiles: &[Profile],
    fields: &mut Fields,
) -> RateLimitResponse {
    let allowed = is_allowed(decided);
    let verdict = match allowed == decided.verdict.allowed {
        true => None,
        // All quotas together refuse what none of them refuses alone.
        false => Some(refused(decided.verdict)),
    };
    let verdict = verdict.as_ref().unwrap_or(decided.verdict);
    let mut response = RateLimitResponse {
        overall_code: if allowed { OK } else { OVER_LIMIT },
        statuses: decided.shown.iter().map(status).collect(),
        dynamic_metadata: metadata(decided, verdict),
        ..RateLimitResponse::default()
    };
    let headers = &mut response.response_headers_to_add;
    fields::each(verdict, profiles, decided.now_us, fields, |key, value| {
        headers.push(HeaderValue { key: key.to_ascii_lowercase(), value: value.to_owned() });
    });
    if !allowed {
        let (key, value) = ("content-type".to_owned(), Problem::MEDIA_TYPE.to_owned());
        headers.push(HeaderValue { key, value });
        let named = verdict
            .rows
            .iter()
            .filter(|row| row.refuses() && row.limit.disclose && row.source != Source::FailClosed);
        let mut body = String::new();
        Problem::QuotaExceeded.render(named.map(|row| &*row.limit.name), &mut body);
        response.raw_body = body.into_bytes();
    }
    response
}

/// What is counted.
pub(super) fn outcome(decided: &Decided<'_, '_>, response: &RateLimitResponse) -> Outcome {
    let failed = |row: &Row<'_>| row.refuses() && row.source == Source::FailClosed;
    match response.overall_code {
        OK => Outcome::Admitted,
        _ if decided.verdict.rows.iter().any(failed) => Outcome::FailClosed,
        _ => Outcome::Refused,
    }
}

/// Over is who is refused by an ordinary descriptor, or by all that are quotas.
fn is_allowed(decided: &Decided<'_, '_>) -> bool {
    let mut quotas = decided.shown.iter().filter(|one| one.is_quota()).peekable();
    let over = quotas.peek().is_some() && quotas.all(Shown::is_over);
    decided.verdict.allowed && !over
}

fn refused<'a>(verdict: &Verdict<'a>) -> Verdict<'a> {
    let mut verdict = verdict.clone();
    verdict.allowed = false;
    let waits = verdict.rows.iter().filter(|row| row.refuses());
    let longest = waits.map(|row| row.outcome.retry_after_us).reduce(|a, b| Some(a?.max(b?)));
    verdict.retry_after_us = longest.flatten();
    verdict
}

fn status(shown: &Shown<'_>) -> DescriptorStatus {
    let code = if shown.is_over() { OVER_LIMIT } else { OK };
    let visible = |row: &&&Row<'_>| (row.enforced() || row.limit.addressed) && row.limit.disclose;
    // The tightest, as everywhere: refused for longest, else with the least remaining, the first of equals.
    let rank = |row: &&&Row<'_>| {
        let wait = row.outcome.retry_after_us.unwrap_or(u64::MAX);
        (!row.refuses(), u64::MAX - if row.refuses() { wait } else { 0 }, row.outcome.remaining)
    };
    let Some(row) = shown.rows.iter().filter(visible).min_by_key(rank) else {
        let unlimited = shown.rule.is_some_and(|rule| rule.limit.is_none());
        let limit_remaining = if unlimited { u32::MAX } else { 0 };
        return DescriptorStatus { code, limit_remaining, ..DescriptorStatus::default() };
    };
    let unit = row.window_us.and_then(Unit::of_period_us).map_or(0, |unit| unit as i32);
    let name = match (row.limit.addressed, shown.rule) {
        (true, Some(rule)) => rule.name.as_deref().unwrap_or_default(),
        _ if shown.own => "",
        _ => &row.limit.name,
    };
    DescriptorStatus {
        code,
        current_limit: Some(RateLimit {
            requests_per_unit: saturate(row.outcome.limit),
            unit,
            name: name.to_owned(),
        }),
        limit_remaining: saturate(row.outcome.remaining),
        // Envoy cuts off what is less than a second.
        duration_until_reset: Some(Duration {
            seconds: row.outcome.reset_after_us.div_ceil(1_000_000).cast_signed(),
            nanos: 0,
        }),
    }
}

fn saturate(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// That of the descriptors that passed, the first of equal names; and which limit decided.
fn metadata(decided: &Decided<'_, '_>, verdict: &Verdict<'_>) -> Option<Struct> {
    let mut all = Struct::default();
    for one in decided.shown.iter().filter(|one| !one.is_over()) {
        let Some(Metadata::Map(entries)) = one.rule.and_then(|rule| rule.metadata.as_ref()) else {
            continue;
        };
        for (name, given) in entries {
            all.put(name, kind(given));
        }
    }
    let deciding = match verdict.allowed {
        true => {
            verdict.rows.iter().filter(|row| row.enforced()).min_by_key(|row| row.outcome.remaining)
        }
        false => verdict
            .rows
            .iter()
            .filter(|row| row.refuses())
            .max_by_key(|row| row.outcome.retry_after_us.unwrap_or(u64::MAX)),
    };
    if let Some(row) = deciding {
        let mut ours = Struct::default();
        ours.put("limit", Kind::Text(row.limit.name.to_string()));
        ours.put("source", Kind::Text(row.source.as_str().to_owned()));
        ours.put("allowed", Kind::Bool(verdict.allowed));
        // Ours, whatever a file calls its own.
        all.fields.retain(|field| field.key != "tollgate");
        all.put("tollgate", Kind::Struct(ours));
    }
    (!all.fields.is_empty()).then_some(all)
}

/// As deep as its file, which is bounded.
fn kind(given: &Metadata) -> Kind {
    match given {
        Metadata::Bool(value) => Kind::Bool(*value),
        Metadata::Text(text) => Kind::Text(text.to_string()),
        Metadata::Number(text) => match text.parse() {
            Ok(number) => Kind::Number(number),
            Err(_) => Kind::Text(text.to_string()),
        },
        Metadata::List(items) => {
            let value = |item| Value { kind: Some(kind(item)) };
            Kind::List(ListValue { values: items.iter().map(value).collect() })
        }
        Metadata::Map(entries) => {
            let mut map = Struct::default();
            entries.iter().for_each(|(name, item)| map.put(name, kind(item)));
            Kind::Struct(map)
        }
        Metadata::Null => Kind::Null(0),
    }
}
