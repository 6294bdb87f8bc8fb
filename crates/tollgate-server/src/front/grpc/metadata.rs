//! `dynamic_metadata`: the request and the `metadata` of the files, nested as in
//! envoyproxy/ratelimit. Tollgate's own values are under `tollgate`.

use super::encode::{DescriptorDecision, RateLimitDecision};
use super::messages::{RateLimitDescriptor, RateLimitRequest};
use super::writer::MessageWriter;
use smallvec::SmallVec;
use tollgate::engine::Verdict;
use tollgate_policy::envoy::{Metadata, Unit};

/// The entries of a map in a file.
type Entries = [(Box<str>, Metadata)];

/// Writes the fields of the `Struct`.
pub(super) fn write(
    decision: &RateLimitDecision<'_, '_>,
    verdict: &Verdict<'_>,
    out: &mut impl MessageWriter,
) {
    request(decision.request, out);
    let passed = decision.descriptors.iter().filter(|one| !one.is_over());
    let maps: SmallVec<[&Entries; 4]> = passed.filter_map(file_metadata).collect();
    if maps.iter().any(|map| !map.is_empty()) {
        out.entry("metadata", |out| out.structure(|out| write_merged(out, &maps)));
    }
    let Some(row) = verdict.tightest() else { return };
    out.entry("tollgate", |out| {
        out.structure(|out| {
            out.entry("limit", |out| out.string([&*row.limit.name]));
            out.entry("source", |out| out.string([row.source.as_str()]));
            out.entry("allowed", |out| out.boolean(verdict.allowed));
        });
    });
}

/// Writes `domain`, `descriptors` and `hitsAddend`.
fn request(request: &RateLimitRequest, out: &mut impl MessageWriter) {
    out.entry("domain", |out| out.string([&*request.domain]));
    out.entry("descriptors", |out| {
        out.list(|out| {
            for one in &request.descriptors {
                out.element(|out| out.structure(|out| descriptor(one, out)));
            }
        });
    });
    if request.hits_addend != 0 {
        out.entry("hitsAddend", |out| out.double(request.hits_addend.into()));
    }
}

fn descriptor(descriptor: &RateLimitDescriptor, out: &mut impl MessageWriter) {
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
