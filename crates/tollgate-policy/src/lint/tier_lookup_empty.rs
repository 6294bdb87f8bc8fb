//! TG124: a tier lookup that finds no client.
//!
//! Fires where `by` names an attribute that is nowhere else in the file and is spelt almost like
//! one that is, or like `api_key`. Fires too for 64 hexadecimal digits in a map by API key: they
//! are a hash without `sha256:`. Quiet for names that are like no other, since callers of the check
//! API send what attributes they like.

use super::Findings;
use super::analysis::view::LintView;
use super::unsupplied::conditions;
use crate::diagnostic::{Code, nearest, quoted};
use crate::identity::hash;
use crate::{grammar, raw};

pub(super) const CODE: &Code = &Code::new(
    "TG124",
    "tier lookup that finds nothing",
    "A client that is not found gets the default tier, without any error.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let Some(tiers) = &view.compiled.file.tiers else { return };
    let of_redis = match tiers.redis.as_deref() {
        Some(raw::TiersRedis::Form(form)) => form.by.as_ref(),
        _ => None,
    };
    for by in tiers.by.iter().chain(of_redis) {
        let name = grammar::attribute(by).unwrap_or_default();
        if let Some(near) = meant(view, &name) {
            let message =
                format!("nothing else in the file uses {}; did you mean `{near}`?", quoted(&name));
            findings.warn(by.at, message, format!("write `by: {near}`"));
        }
    }
    let is_by_key = tiers.by.as_ref().is_some_and(|by| &***by == "api_key");
    let Some(map) = tiers.map.as_ref().filter(|_| is_by_key) else { return };
    for (value, _) in map.0.iter().filter(|(value, _)| hash::parse(value).is_some()) {
        let message = "64 hexadecimal digits look like a hash, but are read as a plain API key";
        let help = "write `sha256:` before the digits, as `tollgate hash` prints them";
        findings.warn(value.at, message.to_owned(), help);
    }
}

/// The attribute that was meant in place of one that nothing supplies and no limit reads.
fn meant<'a>(view: &'a LintView<'_>, name: &str) -> Option<&'a str> {
    let keys = view.limits.iter().flat_map(|item| item.limit.keys().flatten().map(|part| &**part));
    let matched = view.limits.iter().flat_map(|item| conditions(item).map(|(part, _)| part));
    let identity = view.compiled.settings.identity.iter().map(|(part, _)| &**part);
    let known: Vec<&str> = keys.chain(matched).chain(identity).chain(["api_key"]).collect();
    if grammar::is_built_in(name) || name == "user" || known.contains(&name) {
        return None;
    }
    nearest(name, known)
}
