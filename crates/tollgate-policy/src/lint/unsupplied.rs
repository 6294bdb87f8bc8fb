//! TG110: an attribute that never comes.
//!
//! The gateway supplies `ip method path host header.* cookie.* query.*` and what `identity` names; Envoy's rate limit
//! service `domain descriptor.*`; the check API whatever its caller sends, and RESP the values of any key. So this fires
//! only where `http` does not listen, once for each attribute, at its first use.
//!
//! Quiet when neither the gateway nor gRPC listens (a file for a program that embeds the engine, or for RESP alone,
//! where `match` is not evaluated), and for limits that are off.

use super::Findings;
use super::view::{Item, View};
use crate::diagnostic::{Code, Position};
use crate::grammar;
use crate::raw;
use crate::settings::Front;
use crate::suggest::quoted;
use std::collections::HashSet;

pub(super) const CODE: &Code = &Code::new(
    "TG110",
    "attribute that no front end supplies",
    "A limit whose attribute is always missing never applies, or applies to everyone alike.",
);

pub(super) fn check(view: &View<'_>, findings: &mut Findings<'_>) {
    let reads = view.listens(Front::Gateway) || view.listens(Front::Grpc);
    if view.listens(Front::Http) || !reads {
        return;
    }
    let mut seen = HashSet::new();
    let mut report = |attribute: &str, at: Position, used: &str| {
        let attribute = grammar::attribute(attribute).unwrap_or_default();
        if is_supplied(view, &attribute) || !seen.insert(attribute.clone()) {
            return;
        }
        let message = format!("no front end that listens supplies {}, {used}", quoted(&attribute));
        findings.warn(at, message, help(view, &attribute));
    };
    if let Some(tiers) = &view.compiled.file.tiers {
        tiers.attributes().for_each(|field| report(field, field.at, "which decides the tier"));
    }
    for item in view.limits.iter().filter(|item| item.is_on()) {
        let name = quoted(&item.limit.name);
        for (attribute, at) in item.key().filter(|_| !view.listens(Front::Resp)) {
            report(attribute, at, &format!("which is in the key of {name}"));
        }
        for (attribute, at) in conditions(item) {
            report(attribute, at, &format!("which the match of {name} needs"));
        }
        if let Some((header, at)) = cost_header(item) {
            report(&format!("header.{header}"), at, &format!("which is the cost of {name}"));
        }
        for (attribute, at) in cost_conditions(item) {
            report(attribute, at, &format!("which the cost of {name} depends on"));
        }
    }
}

fn is_supplied(view: &View<'_>, attribute: &str) -> bool {
    let begins = |parts: &[&str]| parts.iter().any(|part| attribute.starts_with(part));
    let by_gateway = matches!(attribute, "ip" | "method" | "path" | "host")
        || begins(&["header.", "cookie.", "query."])
        || view.identity(attribute).is_some();
    let by_grpc = attribute == "domain" || begins(&["descriptor."]);
    (by_gateway && view.listens(Front::Gateway)) || (by_grpc && view.listens(Front::Grpc))
}

fn help(view: &View<'_>, attribute: &str) -> String {
    if grammar::is_built_in(attribute) && !attribute.starts_with("jwt.") {
        let front = if attribute.starts_with("descriptor.") || attribute == "domain" {
            "grpc"
        } else {
            "gateway"
        };
        return format!(
            "add `{front}` to `listen`, or use an attribute of the front ends that do listen"
        );
    }
    if !view.listens(Front::Gateway) {
        return format!(
            "use `descriptor.{attribute}`, or add `http` to `listen` for callers that send it"
        );
    }
    let (name, source) = match attribute.strip_prefix("jwt.") {
        Some(claim) => (claim, attribute.to_owned()),
        None => (attribute, format!("jwt.{attribute}")),
    };
    format!(
        "say where it comes from, such as `identity: {{{name}: {source}}}`, or add `http` to `listen` for callers that send it"
    )
}

/// The attributes of `match` and of its exclusions, as written.
pub(super) fn conditions<'a>(item: &Item<'a>) -> impl Iterator<Item = (&'a str, Position)> {
    let entry: &'a raw::Limit = &item.entry.value;
    entry.r#match.iter().flat_map(|spec| attributes(&spec.value))
}

/// The same for the entries of a cost.
fn cost_conditions<'a>(item: &Item<'a>) -> impl Iterator<Item = (&'a str, Position)> {
    let entry: &'a raw::Limit = &item.entry.value;
    let entries = match entry.cost.as_ref().map(|cost| &cost.value) {
        Some(raw::Cost::ByMatch(entries)) => entries.as_slice(),
        Some(raw::Cost::Fixed(_) | raw::Cost::Form(_)) | None => &[],
    };
    entries.iter().filter_map(|entry| entry.r#match.as_ref()).flat_map(|spec| attributes(spec))
}

fn attributes(spec: &raw::Match) -> impl Iterator<Item = (&str, Position)> {
    let not = spec.not.iter().flat_map(|not| &not.0).flat_map(|out| &out.value.0);
    spec.conditions.0.iter().chain(not).map(|(name, _)| (name.value.as_str(), name.at))
}

fn cost_header<'a>(item: &Item<'a>) -> Option<(&'a str, Position)> {
    let entry: &'a raw::Limit = &item.entry.value;
    match &entry.cost.as_ref()?.value {
        raw::Cost::Form(form) => form.header.as_ref().map(|header| (&*header.value, header.at)),
        raw::Cost::Fixed(_) | raw::Cost::ByMatch(_) => None,
    }
}
