//! TG110: an attribute that no front end supplies.
//!
//! The gateway supplies `ip method path host header.* cookie.* query.*` and the attributes of
//! `identity`. Envoy's rate limit service supplies `domain descriptor.*`. The check API supplies
//! whatever its caller sends, and RESP the values of any key. So any attribute may be reported only
//! if `http` does not listen; each is reported once, at its first use. If `http` listens beside the
//! gateway, a key is reported that no request through the gateway can have. It is not reported if
//! the limit's `match` or a descriptor in its key shows that the limit is for another front end.
//! Classes are checked like matches.
//!
//! Not reported: limits that are off, and files in which neither the gateway nor gRPC listens. Such
//! a file is for a program that embeds the engine, or for RESP alone, where `match` is not
//! evaluated.

use super::Findings;
use super::analysis::view::{LintView, LintedLimit};
use crate::diagnostic::{Code, Position, quoted};
use crate::grammar;
use crate::raw;
use crate::settings::Front;
use std::collections::HashSet;

pub(super) const CODE: &Code = &Code::new(
    "TG110",
    "attribute that no front end supplies",
    "A limit whose attribute is always missing never applies, or counts all clients together.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let reads = view.listens(Front::Gateway) || view.listens(Front::Grpc);
    if view.listens(Front::Http) {
        return check_gateway(view, findings);
    }
    if !reads {
        return;
    }
    let mut seen = HashSet::new();
    let mut report = |attribute: &str, at: Position, used: &str| {
        let attribute = grammar::attribute(attribute).unwrap_or_default();
        if is_supplied(view, &attribute) || !seen.insert(attribute.clone()) {
            return;
        }
        let message = format!("no configured front end supplies {}, {used}", quoted(&attribute));
        findings.warn(at, message, help(view, &attribute));
    };
    if let Some(tiers) = &view.compiled.file.tiers {
        tiers.attributes().for_each(|field| report(field, field.at, "which decides the tier"));
    }
    for (class, name) in classes(view) {
        let conditions = class.r#match.iter().flat_map(|spec| attributes(&spec.value));
        for (attribute, at) in conditions {
            report(attribute, at, &format!("which the class {name} needs"));
        }
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

/// The classes as written, each with its name. TG128 reports classes without `shed`.
fn classes<'a>(view: &LintView<'a>) -> impl Iterator<Item = (&'a raw::Class, String)> {
    let file = &view.compiled.file;
    let classes = file.classes.iter().filter(|_| file.shed.is_some());
    let entries = classes.flat_map(|classes| classes.value.iter());
    entries.map(|entry| {
        let name = entry.value.name.as_ref().map_or("", |name| &*name.value);
        (&entry.value, quoted(name))
    })
}

/// Reports keys that the gateway cannot complete while the check API can.
fn check_gateway(view: &LintView<'_>, findings: &mut Findings<'_>) {
    if !view.listens(Front::Gateway) || view.listens(Front::Resp) {
        return;
    }
    let mut seen = HashSet::new();
    for item in view.limits.iter().filter(|item| item.is_on()) {
        let lacks = |attribute: &str| {
            let attribute = grammar::attribute(attribute).unwrap_or_default();
            (!is_of_gateway(view, &attribute)).then_some(attribute)
        };
        let is_complete = |mut key: Vec<&str>| key.drain(..).all(|name| lacks(name).is_none());
        let mut keys = item.keys().map(|key| key.map(|(name, _)| name).collect());
        if keys.any(is_complete) || required(item).any(|(name, _)| lacks(name).is_some()) {
            continue;
        }
        let missing = item.key().filter_map(|(name, at)| Some((lacks(name)?, at)));
        let missing: Vec<_> = missing.collect();
        if missing.iter().any(|(name, _)| grammar::is_built_in(name)) {
            continue;
        }
        for (name, at) in missing.into_iter().filter(|(name, _)| seen.insert(name.clone())) {
            let (shown, limit) = (quoted(&name), quoted(&item.limit.name));
            let message =
                format!("the gateway never supplies {shown}, which is in the key of {limit}");
            let help = format!(
                "add `identity: {{{name}: {}}}`, or a `match` for callers of the check API only",
                usual_source(&name)
            );
            findings.warn(at, message, help);
        }
    }
}

fn is_supplied(view: &LintView<'_>, attribute: &str) -> bool {
    let by_grpc = attribute == "domain" || attribute.starts_with("descriptor.");
    (is_of_gateway(view, attribute) && view.listens(Front::Gateway))
        || (by_grpc && view.listens(Front::Grpc))
}

/// Whether a request through the gateway can have the attribute.
fn is_of_gateway(view: &LintView<'_>, attribute: &str) -> bool {
    matches!(attribute, "ip" | "method" | "path" | "host")
        || ["header.", "cookie.", "query."].iter().any(|part| attribute.starts_with(part))
        || view.identity(attribute).is_some()
}

/// Names the usual source of an attribute. Claims are verified, so clients cannot choose them.
fn usual_source(attribute: &str) -> String {
    match attribute {
        "api_key" => "header.x-api-key".to_owned(),
        "user" => "header.x-user-id".to_owned(),
        _ => format!("jwt.{attribute}"),
    }
}

fn help(view: &LintView<'_>, attribute: &str) -> String {
    if grammar::is_built_in(attribute) && !attribute.starts_with("jwt.") {
        let front = if attribute.starts_with("descriptor.") || attribute == "domain" {
            "grpc"
        } else {
            "gateway"
        };
        return format!(
            "add `{front}` to `listen`, or use an attribute that a configured front end supplies"
        );
    }
    if !view.listens(Front::Gateway) {
        return format!(
            "use `descriptor.{attribute}`, or add `http` to `listen` for callers that send it"
        );
    }
    let (name, source) = match attribute.strip_prefix("jwt.") {
        Some(claim) => (claim, attribute.to_owned()),
        None => (attribute, usual_source(attribute)),
    };
    format!(
        "say where it comes from, such as `identity: {{{name}: {source}}}`, or add `http` to `listen` for callers that send it"
    )
}

/// The attributes of `match` and of its exclusions, as written.
pub(super) fn conditions<'a>(item: &LintedLimit<'a>) -> impl Iterator<Item = (&'a str, Position)> {
    let entry: &'a raw::Limit = &item.entry.value;
    entry.r#match.iter().flat_map(|spec| attributes(&spec.value))
}

/// The attributes that a request needs to match.
fn required<'a>(item: &LintedLimit<'a>) -> impl Iterator<Item = (&'a str, Position)> {
    let entry: &'a raw::Limit = &item.entry.value;
    let conditions = entry.r#match.iter().flat_map(|spec| &spec.value.conditions.0);
    conditions.map(|(name, _)| (name.value.as_str(), name.at))
}

/// The attributes of `match` in the entries of a cost list, as written.
fn cost_conditions<'a>(item: &LintedLimit<'a>) -> impl Iterator<Item = (&'a str, Position)> {
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

fn cost_header<'a>(item: &LintedLimit<'a>) -> Option<(&'a str, Position)> {
    let entry: &'a raw::Limit = &item.entry.value;
    match &entry.cost.as_ref()?.value {
        raw::Cost::Form(form) => form.header.as_ref().map(|header| (&*header.value, header.at)),
        raw::Cost::Fixed(_) | raw::Cost::ByMatch(_) => None,
    }
}
