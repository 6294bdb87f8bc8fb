//! Encodes a decision as `RateLimitResponse`, in protobuf or JSON.

use super::messages::{RateLimitDescriptor, RateLimitRequest};
use super::writer::{MessageField, MessageWriter};
use crate::front::problem;
use hyper::StatusCode;
use smallvec::SmallVec;
use tollgate::engine::{Row, Source, Verdict};
use tollgate_core::header::{HeaderLines, Problem, Profile, retry_after_seconds};
use tollgate_policy::envoy::{DescriptorRule, Metadata, Unit};
use tollgate_policy::limit::Selector;
use tollgate_policy::settings::Envoy;
use tollgate_tower::{problem_of, render_headers};

/// The entries of a map in a file's `metadata`.
type Entries = [(Box<str>, Metadata)];

/// The decision on one request.
pub(super) struct RateLimitDecision<'a, 'b> {
    pub(super) request: &'b RateLimitRequest,
    pub(super) verdict: &'b Verdict<'a>,
    /// The decisions, in the order of the request's descriptors.
    pub(super) descriptors: &'b [DescriptorDecision<'a>],
    pub(super) now_us: u64,
    /// The settings for answers to Envoy.
    pub(super) envoy: &'b Envoy,
    pub(super) profiles: &'b [Profile],
}

/// The decision on one descriptor.
pub(super) struct DescriptorDecision<'a> {
    pub(super) rows: SmallVec<[&'a Row<'a>; 4]>,
    pub(super) rule: Option<&'a DescriptorRule>,
    /// Whether the limit is inline. Inline limits have no name.
    pub(super) inline: bool,
}

impl DescriptorDecision<'_> {
    /// Whether an enforced limit of the descriptor refuses.
    pub(super) fn is_over(&self) -> bool {
        self.rows.iter().any(|row| row.refuses())
    }
}

/// The refusal by quotas, which refuse only together: the gate admits a request that all of them
/// refuse.
pub(super) fn refused_by_quotas<'a>(
    verdict: &Verdict<'a>,
    descriptors: &[DescriptorDecision<'_>],
) -> Option<Verdict<'a>> {
    let is_quota = |one: &&DescriptorDecision<'_>| one.rule.is_some_and(DescriptorRule::is_quota);
    let mut quotas = descriptors.iter().filter(is_quota).peekable();
    let is_over = quotas.peek().is_some() && quotas.all(DescriptorDecision::is_over);
    (verdict.allowed && is_over).then(|| verdict.refused())
}

impl RateLimitDecision<'_, '_> {
    /// Writes the response. `header_lines` is a reused buffer. The code is never UNKNOWN: Envoy
    /// would admit the request.
    pub(super) fn write(&self, header_lines: &mut HeaderLines, out: &mut impl MessageWriter) {
        let verdict = self.verdict;
        code(out, MessageField(1, "overallCode"), !verdict.allowed);
        for descriptor in self.descriptors {
            out.repeated(MessageField(2, "statuses"), |out| status(descriptor, out));
        }
        let mut header = |key: &str, value: &str| {
            out.repeated(MessageField(3, "responseHeadersToAdd"), |out| {
                out.lowercase(MessageField(1, "key"), key);
                out.text(MessageField(2, "value"), value);
            });
        };
        render_headers(verdict, self.profiles, self.now_us, header_lines);
        header_lines.iter().for_each(|(name, value)| header(name, value));
        if !verdict.allowed {
            header("content-type", Problem::MEDIA_TYPE);
            out.bytes(MessageField(5, "rawBody"), self.problem().as_bytes());
        }
        if self.envoy.dynamic_metadata {
            out.message(MessageField(6, "dynamicMetadata"), |out| {
                write_metadata(self, out);
            });
        }
    }

    /// The body of a refusal.
    fn problem(&self) -> String {
        let verdict = self.verdict;
        let named = verdict.rows.iter().filter(|row| row.refuses() && row.limit.disclose);
        let (problem, quota) = problem_of(verdict);
        // Envoy answers 429 for every refusal, and a problem repeats the status.
        let is_kept = problem.status() == 429 || verdict.source == Source::Shed;
        let problem = if is_kept { problem } else { Problem::QuotaExceeded };
        let retry_after_s = verdict.retry_after_us.map(retry_after_seconds);
        let names = named.map(|row| &*row.limit.name);
        let (status, mut body) = (self.envoy.rate_limited_status, String::new());
        problem.render_refusal(status, names, retry_after_s, quota.as_ref(), &mut body);
        body
    }
}

/// Writes the response to a request that is too large. `status` is the status that Envoy answers
/// with.
pub(super) fn too_large(status: u16, out: &mut impl MessageWriter) {
    code(out, MessageField(1, "overallCode"), true);
    out.repeated(MessageField(3, "responseHeadersToAdd"), |out| {
        out.text(MessageField(1, "key"), "content-type");
        out.text(MessageField(2, "value"), Problem::MEDIA_TYPE);
    });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let problem = problem::Problem::new(status, "the descriptors have more than 256 KiB");
    out.bytes(MessageField(5, "rawBody"), problem.to_json().as_bytes());
}

/// Writes a `DescriptorStatus`.
fn status(descriptor: &DescriptorDecision<'_>, out: &mut impl MessageWriter) {
    const REMAINING: MessageField = MessageField(3, "limitRemaining");
    let visible = |row: &&&Row<'_>| {
        (row.enforced() || row.limit.selector == Selector::Descriptor) && row.limit.disclose
    };
    code(out, MessageField(1, "code"), descriptor.is_over());
    let Some(row) = Row::tightest(descriptor.rows.iter().filter(visible).copied()) else {
        let unlimited = descriptor.rule.is_some_and(|rule| rule.limit.is_none());
        return out.number(REMAINING, if unlimited { u32::MAX.into() } else { 0 });
    };
    let name = match (row.limit.selector == Selector::Descriptor, descriptor.rule) {
        (true, Some(rule)) => rule.name.as_deref().unwrap_or_default(),
        _ if descriptor.inline => "",
        _ => &row.limit.name,
    };
    out.message(MessageField(2, "currentLimit"), |out| {
        out.number(MessageField(1, "requestsPerUnit"), saturate(row.outcome.limit));
        if let Some(unit) = row.window_us.and_then(Unit::of_period_us) {
            out.enumeration(MessageField(2, "unit"), unit as u64, unit.name());
        }
        out.text(MessageField(3, "name"), name);
    });
    out.number(REMAINING, saturate(row.outcome.remaining));
    // Rounded up: Envoy truncates fractions of a second.
    let reset_s = row.outcome.reset_after_us.div_ceil(1_000_000);
    out.seconds(MessageField(4, "durationUntilReset"), reset_s);
}

/// Writes a `Code`: OK or OVER_LIMIT.
fn code(out: &mut impl MessageWriter, field: MessageField, is_over: bool) {
    let (value, name) = if is_over { (2, "OVER_LIMIT") } else { (1, "OK") };
    out.enumeration(field, value, name);
}

fn saturate(value: u64) -> u64 {
    value.min(u32::MAX.into())
}

/// Writes the fields of `dynamic_metadata`: the request and the `metadata` of the files, nested as
/// in envoyproxy/ratelimit. Tollgate's own values are under `tollgate`.
fn write_metadata(decision: &RateLimitDecision<'_, '_>, out: &mut impl MessageWriter) {
    write_request(decision.request, out);
    let passed = decision.descriptors.iter().filter(|one| !one.is_over());
    let maps: SmallVec<[&Entries; 4]> = passed.filter_map(file_metadata).collect();
    if maps.iter().any(|map| !map.is_empty()) {
        out.entry("metadata", |out| out.structure(|out| write_merged(out, &maps)));
    }
    let verdict = decision.verdict;
    let Some(row) = verdict.tightest() else { return };
    out.entry("tollgate", |out| {
        out.structure(|out| {
            out.entry("limit", |out| out.string([&*row.limit.name]));
            out.entry("source", |out| out.string([row.source.as_str()]));
            out.entry("allowed", |out| out.boolean(verdict.allowed));
        });
    });
}

/// Writes `domain`, `descriptors` and `hitsAddend` of the request.
fn write_request(request: &RateLimitRequest, out: &mut impl MessageWriter) {
    out.entry("domain", |out| out.string([&*request.domain]));
    out.entry("descriptors", |out| {
        out.list(|out| {
            for one in &request.descriptors {
                out.element(|out| out.structure(|out| write_descriptor(one, out)));
            }
        });
    });
    if request.hits_addend != 0 {
        out.entry("hitsAddend", |out| out.double(request.hits_addend.into()));
    }
}

fn write_descriptor(descriptor: &RateLimitDescriptor, out: &mut impl MessageWriter) {
    out.entry("entries", |out| {
        out.list(|out| {
            for entry in &descriptor.entries {
                out.element(|out| out.string([&*entry.key, "=", &*entry.value]));
            }
        });
    });
    if let Some(limit) = descriptor.limit {
        let mut shown = String::new();
        if limit.requests_per_unit != 0 {
            shown = format!("requests_per_unit:{} ", limit.requests_per_unit);
        }
        let unit = Unit::of_number(limit.unit).map_or("UNKNOWN", Unit::name);
        out.entry("limit", |out| out.string([&*shown, "unit:", unit]));
    }
    if let Some(hits) = descriptor.hits_addend {
        out.entry("hitsAddend", |out| out.double(hits.value as f64));
    }
}

/// The file's metadata for a descriptor; an unlimited descriptor has none.
fn file_metadata<'a>(descriptor: &DescriptorDecision<'a>) -> Option<&'a Entries> {
    let rule = descriptor.rule.filter(|rule| rule.limit.is_some())?;
    match rule.metadata.as_ref()? {
        Metadata::Map(entries) => Some(entries),
        _ => None,
    }
}

/// Merges several maps. The first value of a name counts; maps under one name are merged too.
fn write_merged(out: &mut impl MessageWriter, maps: &[&Entries]) {
    let mut known: SmallVec<[&str; 8]> = SmallVec::new();
    for (place, map) in maps.iter().enumerate() {
        for (name, given) in *map {
            if known.contains(&&**name) {
                continue;
            }
            known.push(name);
            let Metadata::Map(entries) = given else {
                out.entry(name, |out| write_value(out, given));
                continue;
            };
            let mut below: SmallVec<[&Entries; 4]> = SmallVec::from_slice(&[&**entries]);
            below.extend(maps[place + 1..].iter().filter_map(|map| map_named(map, name)));
            out.entry(name, |out| out.structure(|out| write_merged(out, &below)));
        }
    }
}

/// The map under this name, if the name's first value is a map.
fn map_named<'a>(map: &&'a Entries, name: &str) -> Option<&'a Entries> {
    match map.iter().find(|(known, _)| &**known == name)? {
        (_, Metadata::Map(entries)) => Some(entries),
        _ => None,
    }
}

/// Writes a value of a file. The recursion is bounded by the file's depth.
fn write_value(out: &mut impl MessageWriter, given: &Metadata) {
    match given {
        Metadata::Null => out.null(),
        Metadata::Bool(value) => out.boolean(*value),
        Metadata::Text(text) => out.string([&**text]),
        Metadata::Number(text) => match text.parse() {
            Ok(number) => out.double(number),
            Err(_) => out.string([&**text]),
        },
        Metadata::List(items) => {
            out.list(|out| items.iter().for_each(|item| out.element(|out| write_value(out, item))));
        }
        Metadata::Map(entries) => out.structure(|out| write_merged(out, &[entries])),
    }
}

#[cfg(test)]
pub(super) mod tests;
