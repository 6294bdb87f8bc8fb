//! TG107: a key with values that clients can invent.
//!
//! Reports each attribute once, at its position in `identity`, else at the first key that uses it.
//! Not reported: files without gateway and forward-auth, claims of a token, and limits that are
//! off. Also not reported: a key such as `[ip, header.x-device]` if another enforced limit covers
//! the same requests by `[ip]`, since that limit bounds invented values. `host` and `method` are
//! not reported if the limit's `match` lists their values without wildcards. Each key of `first_of`
//! is checked by itself: a client that invents a value for one key never uses the keys after it.

use super::client_invented_source;
use crate::diagnostic::{Code, Position, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::{CoverSearch, LintView, LintedLimit};
use std::collections::HashSet;

pub(crate) const CODE: &Code = &Code::new(
    "TG107",
    "key that a client can choose",
    "A client with a new value for each request is never limited, and one that sends another's value spends that client's quota.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for item in view.limits.iter().filter(|item| item.is_on()) {
        let keys = item.keys().zip(item.limit.keys()).enumerate();
        let keys = keys.flat_map(|(place, (key, names))| key.map(move |part| (place, names, part)));
        for (place, names, (attribute, at)) in keys {
            let Some(source) = chosen_source(view, item, attribute) else { continue };
            if seen.contains(attribute) || is_bounded(view, item, names) {
                continue;
            }
            seen.insert(attribute.to_owned());
            let name = quoted(&item.limit.name);
            let mut message = if source == attribute {
                format!("clients choose {}, the key of {name}", quoted(attribute))
            } else {
                format!(
                    "clients choose {}, and the key {} of {name} comes from it",
                    quoted(&source),
                    quoted(attribute)
                )
            };
            if let Some(next) = item.limit.keys().nth(place + 1) {
                let next = quoted(&next.join("+"));
                message.push_str(&format!(
                    "; a client that sends new values is never counted by {next}"
                ));
            }
            let help = "take it from a verified token (`jwt.sub`), or have a proxy overwrite what clients send";
            findings.warn(identity_at(view, attribute).unwrap_or(at), message, help);
        }
    }
}

/// Returns the part of the request from which clients choose the attribute of this limit's key.
fn chosen_source(view: &LintView<'_>, item: &LintedLimit<'_>, attribute: &str) -> Option<String> {
    let is_listed = matches!(attribute, "host" | "method") && item.shape.lists_values_of(attribute);
    client_invented_source(view, attribute).filter(|_| !is_listed)
}

/// Whether another limit bounds all buckets that a client can invent for this key.
fn is_bounded<'a>(view: &LintView<'a>, item: &LintedLimit<'a>, names: &[Box<str>]) -> bool {
    let bounds = |other: &LintedLimit<'_>| {
        let key = &other.limit.key;
        let is_given = |part: &str| chosen_source(view, other, part).is_none();
        let is_part = |part: &str| is_given(part) && names.iter().any(|name| **name == *part);
        other.limit.fallback_keys.is_empty()
            && !key.is_empty()
            && key.iter().all(|part| is_part(part))
    };
    !matches!(view.find_covering(item, bounds), CoverSearch::None)
}

fn identity_at(view: &LintView<'_>, attribute: &str) -> Option<Position> {
    let entries = &view.compiled.file.identity.as_ref()?.value.0;
    entries.iter().find(|(name, _)| name.value == attribute).map(|(_, from)| from.at)
}
