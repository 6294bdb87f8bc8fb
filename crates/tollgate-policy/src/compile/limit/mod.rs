//! One entry of `limits`, checked: its keys, rates, costs and failure policy.

mod candidate;
mod cost;
mod failure;
mod lease;
mod outcome;
mod params;

pub(super) use cost::match_spec;
pub(super) use failure::on_store_failure;

use super::fields;
use crate::diagnostic::{Position, Report, codes, quoted};
use crate::grammar;
use crate::limit::{Consistency, Counting, Limit, Selector};
use crate::match_spec::MatchSpec;
use crate::raw::{self, At, File, KeyChoice, OneOrMany, Text};
use crate::settings::Settings;
use params::{ParamsByTier, params_by_tier};
use std::collections::{HashMap, HashSet};
use tollgate_core::LimitParams;

type KeyAttributes = Box<[Box<str>]>;

/// The keys of one limit, in the order in which they are tried.
#[derive(Default)]
struct KeyOrder {
    key: KeyAttributes,
    fallback_keys: Box<[KeyAttributes]>,
}

impl From<KeyAttributes> for KeyOrder {
    fn from(key: KeyAttributes) -> Self {
        Self { key, fallback_keys: Box::default() }
    }
}

/// Compiles the limits of the file. Also returns, for each limit, the index of its entry.
pub(super) fn limits(
    file: &File,
    settings: &Settings,
    report: &mut Report,
) -> (Vec<(Limit, MatchSpec)>, Vec<usize>) {
    let mut limits = Vec::new();
    let mut entries = Vec::new();
    let mut names: HashMap<Box<str>, Position> = HashMap::new();
    for (index, entry) in file.limits.iter().flat_map(|limits| limits.iter()).enumerate() {
        let own = limit(entry, settings, &mut names, report);
        entries.extend(std::iter::repeat_n(index, own.len()));
        limits.extend(own);
    }
    (limits, entries)
}

/// Compiles one entry. Checks every field before it gives up, so that one run reports all errors.
fn limit(
    entry: &At<raw::Limit>,
    settings: &Settings,
    names: &mut HashMap<Box<str>, Position>,
    report: &mut Report,
) -> Vec<(Limit, MatchSpec)> {
    let name = match &entry.name {
        Some(name) => report.accept(name.at, grammar::name(name)),
        None => {
            fields::missing("name", (entry.at, &entry.unreadable), report);
            None
        }
    };
    let keys = keys(entry, report);
    let match_spec = cost::match_spec(&entry.r#match, report);
    let errors = report.len();
    let params = params_by_tier(entry, report);
    let is_sound = report.len() == errors;
    let consistency = lease::consistency(&entry.consistency, params.as_ref(), settings, report);
    let cost = cost::cost(&entry.cost, report);
    let penalty = outcome::penalty(&entry.penalty, report);
    let counting = counting(entry, params.as_ref(), consistency, report);
    let on_response = outcome::on_response(&entry.on_response, report);
    // If the limit's own parameters have errors, the candidate is skipped: it would repeat them.
    let candidate =
        if is_sound { candidate::candidate(entry, (consistency, counting), report) } else { None };
    let on_store_failure = failure::on_store_failure(&entry.on_store_failure, report)
        .unwrap_or(settings.on_store_failure);
    if let Some(params) = &params {
        failure::check_local_rate(entry, on_store_failure, params, report);
    }
    let (Some(name), Some(params)) = (name, params) else { return Vec::new() };
    let at = entry.name.as_ref().map_or(entry.at, |name| name.at);
    let expanded = entry.keys.is_some();
    let mut limits = Vec::with_capacity(keys.len());
    for KeyOrder { key, fallback_keys } in keys {
        let name: Box<str> =
            if expanded { format!("{name}/{}", key.join("+")).into() } else { name.clone() };
        if !unique(&name, at, names, report) {
            continue;
        }
        let limit = Limit {
            params: params.base.params,
            tiers: params.tiers.iter().map(|(name, tier)| (name.clone(), tier.params)).collect(),
            on_missing: fields::word(&entry.on_missing),
            on_invalid: fields::word(&entry.on_invalid),
            cost: cost.clone(),
            mode: fields::word(&entry.mode),
            on_store_failure,
            disclose: entry.disclose.as_ref().is_none_or(|disclose| disclose.value),
            show_keys: entry.show_keys.as_ref().is_some_and(|show_keys| show_keys.value),
            penalty,
            consistency,
            counting,
            selector: Selector::Match,
            on_response: on_response.clone(),
            candidate: candidate.clone(),
            name,
            key,
            fallback_keys,
        };
        limits.push((limit, match_spec.clone()));
    }
    limits
}

fn unique(
    name: &str,
    at: Position,
    names: &mut HashMap<Box<str>, Position>,
    report: &mut Report,
) -> bool {
    if let Some(first) = names.get(name) {
        let message =
            format!("two limits are named {}; the first is in line {}", quoted(name), first.line);
        report.error(codes::DUPLICATE_NAME, at, message, "rename one of the two");
        return false;
    }
    names.insert(name.into(), at);
    true
}

/// Returns the keys of an entry: `key`, or all of `keys`, or one empty key.
fn keys(entry: &raw::Limit, report: &mut Report) -> Vec<KeyOrder> {
    if let (Some(_), Some(keys)) = (&entry.key, &entry.keys) {
        let message = "`keys` is given together with `key`";
        let help = "keep `key` for one limit, or `keys` for one limit each";
        report.error(codes::KEY_AND_KEYS, keys.name_at, message, help);
    }
    if let Some(keys) = &entry.keys {
        fields::require_items(keys, "keys", keys.at, report);
        let items = keys.iter().map(|item| (&item.value.0, item.at));
        return key_list(items, KeyAttributes::clone, report)
            .into_iter()
            .map(KeyOrder::from)
            .collect();
    }
    let Some(choice) = &entry.key else { return vec![KeyOrder::default()] };
    let form = match &choice.value {
        KeyChoice::Attributes(list) => return vec![key(&list.0, report).into()],
        KeyChoice::FirstOf(form) => form,
    };
    let Some(list) = &form.first_of else {
        fields::missing("first_of", (choice.at, &form.unreadable), report);
        return vec![KeyOrder::default()];
    };
    fields::require_items(list, "first_of", list.at, report);
    // The order of attributes does not matter: a second key with the same attributes is never used.
    let sorted = |key: &KeyAttributes| {
        let mut key = key.clone();
        key.sort_unstable();
        key
    };
    let items = list.iter().map(|item| (&item.value, item.at));
    let mut keys = key_list(items, sorted, report).into_iter();
    let key = keys.next().unwrap_or_default();
    vec![KeyOrder { key, fallback_keys: keys.collect() }]
}

/// Reports empty keys, and keys that are equal by `identity`.
fn key_list<'a>(
    items: impl Iterator<Item = (&'a OneOrMany<Text>, Position)>,
    identity: impl Fn(&KeyAttributes) -> KeyAttributes,
    report: &mut Report,
) -> Vec<KeyAttributes> {
    let mut seen = HashSet::new();
    let mut list = Vec::new();
    for (item, at) in items {
        if item.0.is_empty() {
            let help = "name at least one attribute; one shared bucket is a limit without `key`";
            report.error(codes::BAD_KEY, at, "the key names no attribute", help);
            continue;
        }
        let key = key(&item.0, report);
        if seen.insert(identity(&key)) {
            list.push(key);
        } else {
            let message = format!("the key {} is there twice", quoted(&key.join("+")));
            report.error(codes::BAD_KEY, at, message, "remove one of the two");
        }
    }
    list
}

fn key(attributes: &[At<Text>], report: &mut Report) -> KeyAttributes {
    let mut key: Vec<Box<str>> = Vec::new();
    for item in attributes {
        let Some(attribute) = report.accept(item.at, grammar::attribute(item)) else { continue };
        if key.contains(&attribute) {
            let message = format!("the key names {} twice", quoted(&attribute));
            report.error(codes::BAD_KEY, item.at, message, "remove one of the two");
            continue;
        }
        key.push(attribute);
    }
    key.into()
}

/// Compiles `debt`. Concurrency limits cannot have it, since slots come back when the work ends.
/// Leased limits cannot have it, since a lease cannot be overdrawn.
fn counting(
    entry: &raw::Limit,
    params: Option<&ParamsByTier>,
    consistency: Consistency,
    report: &mut Report,
) -> Counting {
    let Some(debt) = entry.debt.as_ref().filter(|debt| debt.value) else {
        return Counting::Admitted;
    };
    let slots =
        |params: &ParamsByTier| matches!(params.base.params, Some(LimitParams::Concurrency(_)));
    if params.is_some_and(slots) {
        let message = "`debt` does not belong to `concurrency`";
        let help = "remove it: slots come back by themselves";
        report.error(codes::NOT_FOR_ALGORITHM, debt.name_at, message, help);
    }
    if matches!(consistency, Consistency::Leased { .. }) {
        let message = "a limit with `debt` cannot be leased";
        report.error(codes::LEASED_UNAVAILABLE, debt.name_at, message, "remove one of the two");
    }
    Counting::Debt
}
