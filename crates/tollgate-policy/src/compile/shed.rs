//! `classes` and `shed`, checked.

use super::fields::{self, missing, number_u32, require_items};
use super::limit::match_spec;
use crate::diagnostic::{Report, codes, listed, nearest, quoted};
use crate::grammar;
use crate::raw::{self, At, Entries, Field, File, OneOrMany, PercentText, Text};
use crate::shed::{Adaptive, Class, Fleet, ShedPolicy};

/// The most classes: each is a metric label and a counter of the adaptive shedder.
const CLASSES_MAX: usize = 16;
/// The name of the single class in a file without `classes`.
const ONLY_CLASS: &str = "default";
/// Defaults of `min` and `max` of the adaptive limit.
const ADAPTIVE_MIN: u32 = 4;
const ADAPTIVE_MAX: u32 = 512;
/// The largest `max` of the adaptive limit.
const ADAPTIVE_MAX_MAX: u32 = 65_535;
const TTL_US: u64 = 30_000_000;
const ASSUME_US: u64 = 1_000_000;
const HOUR_US: u64 = 3_600_000_000;

/// Compiles `shed`; `None` without it. Classes are checked in any case.
pub(super) fn shed(file: &File, report: &mut Report) -> Option<ShedPolicy> {
    let (classes, default_class) = classes(file, report);
    let shed = file.shed.as_ref()?;
    let is_named = |name: &'static str, is_given: bool| is_given || shed.unreadable.contains(&name);
    if !is_named("fleet", shed.fleet.is_some()) && !is_named("adaptive", shed.adaptive.is_some()) {
        let message = "`shed` has neither `fleet` nor `adaptive`";
        let help = "add `adaptive: {}`, which needs no number, or `fleet: {capacity: 1000}`";
        report.error(codes::MISSING_FIELD, shed.name_at, message, help);
    }
    reserved_name(file, report);
    let lower_by = shed.lower_by.as_ref();
    Some(ShedPolicy {
        fleet: shed.fleet.as_ref().and_then(|fleet| self::fleet(fleet, &classes, report)),
        adaptive: shed.adaptive.as_ref().map(|adaptive| self::adaptive(adaptive, report)),
        fair_by: fair_by(&shed.fair_by, report),
        lower_by: lower_by.and_then(|name| report.accept(name.at, grammar::attribute(name))),
        mode: fields::word(&shed.mode),
        classes: classes.into(),
        default_class,
    })
}

/// Returns the classes and the index of the default class, which is the last one if no class is
/// marked.
fn classes(file: &File, report: &mut Report) -> (Vec<Class>, usize) {
    let Some(list) = &file.classes else {
        return (vec![Class::new(ONLY_CLASS, None)], 0);
    };
    require_items(list, "classes", list.at, report);
    if let Some(extra) = list.get(CLASSES_MAX) {
        let range = format!("1 to {CLASSES_MAX} classes");
        fields::out_of_range(extra.at, &format!("{} classes", list.len()), &range, report);
    }
    let mut classes: Vec<Class> = Vec::new();
    let mut default: Option<(usize, u32)> = None;
    for entry in list.iter() {
        let match_spec = entry.r#match.is_some().then(|| match_spec(&entry.r#match, report));
        let is_default = entry.default.as_ref().filter(|default| default.value);
        let name = match &entry.name {
            Some(name) => report.accept(name.at, grammar::name(name)).map(|text| (text, name.at)),
            None => {
                missing("name", (entry.at, &entry.unreadable), report);
                None
            }
        };
        if let (Some(again), Some((_, line))) = (is_default, default) {
            let message = format!("two classes are the default; the first is in line {line}");
            let help = "keep `default: true` in one of the two";
            report.error(codes::TWO_DEFAULTS, again.name_at, message, help);
        } else if let Some(field) = is_default {
            default = Some((classes.len(), field.name_at.line));
        }
        let Some((name, at)) = name else { continue };
        if classes.iter().any(|class| class.name == name) {
            let message = format!("two classes are named {}", quoted(&name));
            report.error(codes::DUPLICATE_NAME, at, message, "rename one of the two");
            continue;
        }
        // A class without conditions that is not the default matches every request that reaches it.
        let spec =
            if is_default.is_some() { match_spec } else { Some(match_spec.unwrap_or_default()) };
        classes.push(Class { name, match_spec: spec });
    }
    let last = classes.len().saturating_sub(1);
    (classes, default.map_or(last, |(index, _)| index.min(last)))
}

fn fleet(field: &At<raw::ShedFleet>, classes: &[Class], report: &mut Report) -> Option<Fleet> {
    if field.capacity.is_none() {
        missing("capacity", (field.at, &field.unreadable), report);
    }
    let capacity = number_u32(&field.capacity, 1, (1, u32::MAX), report);
    let ttl_us = fields::duration_us(&field.ttl, TTL_US, (1_000_000, HOUR_US), report);
    let assume_us = fields::duration_us(&field.assume, ASSUME_US, (1_000, HOUR_US), report);
    let shares = reserves(&field.reserve, classes, report);
    let slots = |percent: u8| {
        // Rounded up, so that at least this share is reserved.
        let slots = (u64::from(capacity) * u64::from(percent)).div_ceil(100);
        u32::try_from(slots).unwrap_or(capacity)
    };
    let reserved = shares.into_iter().map(slots).collect();
    Some(Fleet { capacity, reserved, ttl_us, assume_us })
}

/// Returns the reserved share of each class, in per cent.
fn reserves(
    field: &Field<Entries<PercentText>>,
    classes: &[Class],
    report: &mut Report,
) -> Vec<u8> {
    let mut shares = vec![0; classes.len()];
    let mut sum = 0_u32;
    for (name, text) in field.iter().flat_map(|entries| &entries.0) {
        let percent = report.accept(text.at, grammar::percent(text)).unwrap_or(0);
        let Some(index) = classes.iter().position(|class| *class.name == *name.value) else {
            let known = classes.iter().map(|class| &*class.name);
            let near = nearest(name, known.clone());
            let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let message = format!("no class is named {}{meant}", quoted(name));
            let help = match near {
                Some(near) => format!("write `{near}`"),
                None => format!("the classes are {}", listed(known)),
            };
            report.error(codes::UNKNOWN_CLASS, name.at, message, help);
            continue;
        };
        let is_last = index + 1 == classes.len();
        if is_last && percent > 0 {
            let name = quoted(name);
            let message =
                format!("{name} is the least important class, so no class leaves it room");
            let help = "reserve for a class above it, or move the class up in `classes`";
            report.error(codes::BAD_RESERVE, text.at, message, help);
        }
        shares[index] = percent;
        let is_above = sum <= 100 && sum + u32::from(percent) > 100;
        sum += u32::from(percent);
        if is_above {
            let message = format!("the reserves are {sum} % together");
            let help = "reserve at most 100 %; the rest is for all classes";
            report.error(codes::BAD_RESERVE, text.at, message, help);
        }
    }
    shares
}

fn adaptive(field: &raw::ShedAdaptive, report: &mut Report) -> Adaptive {
    let range = (1, ADAPTIVE_MAX_MAX);
    let given = |field: &Field<u64>| field.as_ref().and_then(|it| u32::try_from(it.value).ok());
    let min_default = ADAPTIVE_MIN.min(given(&field.max).unwrap_or(ADAPTIVE_MIN)).max(1);
    let max_default = ADAPTIVE_MAX.max(given(&field.min).unwrap_or(ADAPTIVE_MAX));
    let min = number_u32(&field.min, min_default, range, report);
    let max = number_u32(&field.max, max_default.min(ADAPTIVE_MAX_MAX), range, report);
    if let Some(written) = field.min.as_ref().filter(|_| min > max) {
        let range = format!("1 to {max}, which is `max`");
        fields::out_of_range(written.at, &min.to_string(), &range, report);
    }
    Adaptive { min, max }
}

fn fair_by(field: &Field<OneOrMany<Text>>, report: &mut Report) -> Box<[Box<str>]> {
    let Some(field) = field else { return Box::default() };
    require_items(&field.0, "fair_by", field.at, report);
    fields::map_items(&field.0, report, |name| grammar::attribute(name)).into()
}

/// Reports an entry named `shed`. The shedders are `shed/fleet` and `shed/adaptive` in overrides of
/// modes, in the same form as the limits of an entry with `keys`.
fn reserved_name(file: &File, report: &mut Report) {
    let entries = file.limits.iter().flat_map(|limits| limits.iter());
    let names = entries.filter_map(|entry| entry.name.as_ref());
    for name in names.filter(|name| &****name == "shed") {
        let message = "the name `shed` belongs to the shedders";
        report.error(codes::BAD_NAME, name.at, message, "choose another name for the limit");
    }
}
