//! TG124: a tier lookup that finds no client.
//!
//! Reported if `by` names an attribute that occurs nowhere else in the file and is spelt almost
//! like one that does, or like `api_key`. Also reported: 64 hexadecimal digits in a map by API key,
//! which are a hash without `sha256:`. Not reported: names that resemble no other, since callers of
//! the check API may send any attribute.

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

/// Returns the attribute that was probably meant, if nothing supplies this one and no limit reads
/// it.
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
