//! `dynamic_metadata`: the request and the `metadata` of the files, nested as envoyproxy/ratelimit
//! nests them, and our own values beside them under `tollgate`.

use super::asking::{Asking, Descriptor};
use super::encode::{Decided, Shown};
use super::pen::Pen;
use smallvec::SmallVec;
use tollgate::{Row, Verdict};
use tollgate_policy::envoy::{Metadata, Unit};

/// The name under which metadata says what decided.
const OURS: &str = "tollgate";

/// `google.protobuf.Value`.
const TEXT: u8 = 3;
const NUMBER: u8 = 2;
const STRUCT: u8 = 5;
const LIST: u8 = 6;

/// The entries of a map of a file.
type Entries = [(Box<str>, Metadata)];

/// The fields of the `Struct`.
pub(super) fn write(
    asking: &Asking<'_>,
    decided: &Decided<'_, '_>,
    verdict: &Verdict<'_>,
    pen: &mut Pen<'_>,
) {
    request(asking, pen);
    let passed = decided.shown.iter().filter(|one| !one.is_over());
    let maps: SmallVec<[&Entries; 4]> = passed.filter_map(of_file).collect();
    if maps.iter().any(|map| !map.is_empty()) {
        field(pen, "metadata", |pen| pen.message(STRUCT, |pen| merged(pen, &maps)));
    }
    let Some(row) = deciding(verdict) else { return };
    field(pen, OURS, |pen| {
        pen.message(STRUCT, |pen| {
            field(pen, "limit", |pen| pen.bytes_as_is(TEXT, row.limit.name.as_bytes()));
            field(pen, "source", |pen| pen.bytes_as_is(TEXT, row.source.as_str().as_bytes()));
            field(pen, "allowed", |pen| pen.number_as_is(4, verdict.allowed.into()));
        });
    });
}

/// `domain`, `descriptors` and `hitsAddend`.
fn request(asking: &Asking<'_>, pen: &mut Pen<'_>) {
    field(pen, "domain", |pen| pen.bytes_as_is(TEXT, asking.domain.as_bytes()));
    field(pen, "descriptors", |pen| {
        pen.message(LIST, |pen| {
            for one in &asking.descriptors {
                pen.message(1, |pen| pen.message(STRUCT, |pen| descriptor(one, pen)));
            }
        });
    });
    if asking.hits_addend != 0 {
        field(pen, "hitsAddend", |pen| pen.double_as_is(NUMBER, asking.hits_addend.into()));
    }
}

fn descriptor(descriptor: &Descriptor<'_>, pen: &mut Pen<'_>) {
    field(pen, "entries", |pen| {
        pen.message(LIST, |pen| {
            for (key, value) in &descriptor.entries {
                pen.message(1, |pen| pen.texts_as_is(TEXT, [key, "=", value]));
            }
        });
    });
    if let Some(own) = descriptor.limit {
        let mut shown = String::new();
        if own.requests_per_unit != 0 {
            shown = format!("requests_per_unit:{} ", own.requests_per_unit);
        }
        shown += "unit:";
        shown += Unit::of_number(own.unit).map_or("UNKNOWN", Unit::name);
        field(pen, "limit", |pen| pen.bytes_as_is(TEXT, shown.as_bytes()));
    }
    if let Some(hits) = descriptor.hits_addend {
        field(pen, "hitsAddend", |pen| pen.double_as_is(NUMBER, hits as f64));
    }
}

/// The file's metadata for a descriptor; an unlimited descriptor has none.
fn of_file<'a>(shown: &Shown<'a>) -> Option<&'a Entries> {
    let rule = shown.rule.filter(|rule| rule.limit.is_some())?;
    match rule.metadata.as_ref()? {
        Metadata::Map(entries) => Some(entries),
        _ => None,
    }
}

/// The tightest row, which is the one that headers show: among equals the first.
fn deciding<'a>(verdict: &'a Verdict<'_>) -> Option<&'a Row<'a>> {
    let decides = |row: &&Row<'_>| row.enforced() && (verdict.allowed || row.refuses());
    Row::tightest(verdict.rows.iter().filter(decides))
}

/// Several maps as one. The first value of a name counts; maps under one name are merged in turn.
fn merged(pen: &mut Pen<'_>, maps: &[&Entries]) {
    let mut known: SmallVec<[&str; 8]> = SmallVec::new();
    for (place, map) in maps.iter().enumerate() {
        for (name, given) in *map {
            if known.contains(&&**name) {
                continue;
            }
            known.push(name);
            let Metadata::Map(entries) = given else {
                field(pen, name, |pen| value(pen, given));
                continue;
            };
            let mut below: SmallVec<[&Entries; 4]> = SmallVec::from_slice(&[&**entries]);
            below.extend(maps[place + 1..].iter().filter_map(|map| of_name(map, name)));
            field(pen, name, |pen| pen.message(STRUCT, |pen| merged(pen, &below)));
        }
    }
}

/// The map of this name, if the first value of the name is one.
fn of_name<'a>(map: &&'a Entries, name: &str) -> Option<&'a Entries> {
    match map.iter().find(|(known, _)| &**known == name)? {
        (_, Metadata::Map(entries)) => Some(entries),
        _ => None,
    }
}

/// An entry of a `Struct`.
fn field(pen: &mut Pen<'_>, name: &str, write: impl FnOnce(&mut Pen<'_>)) {
    pen.message(1, |pen| {
        pen.text(1, name);
        pen.message(2, write);
    });
}

/// A `Value`, as deep as its file, which is bounded.
fn value(pen: &mut Pen<'_>, given: &Metadata) {
    match given {
        Metadata::Null => pen.number_as_is(1, 0),
        Metadata::Bool(value) => pen.number_as_is(4, (*value).into()),
        Metadata::Text(text) => pen.bytes_as_is(TEXT, text.as_bytes()),
        Metadata::Number(text) => match text.parse() {
            Ok(number) => pen.double_as_is(NUMBER, number),
            Err(_) => pen.bytes_as_is(TEXT, text.as_bytes()),
        },
        Metadata::List(items) => pen.message(LIST, |pen| {
            items.iter().for_each(|item| pen.message(1, |pen| value(pen, item)));
        }),
        Metadata::Map(entries) => pen.message(STRUCT, |pen| merged(pen, &[entries])),
    }
}
