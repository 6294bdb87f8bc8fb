//! TG114: a key with more values than there are clients.
//!
//! `path`, `query.*` and `header.user-agent` have as many values as clients care to send. Not
//! reported: attributes whose values `match` lists without wildcards, which bounds the number of
//! buckets, and limits that are off.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use std::collections::HashSet;

pub(super) const CODE: &Code = &Code::new(
    "TG114",
    "key with unbounded values",
    "Each new value is a new bucket: a client that varies it is never limited, and the store fills up.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for item in view.limits.iter().filter(|item| item.is_on()) {
        let entry = view.compiled.entries.get(item.index).copied().unwrap_or_default();
        for (attribute, at) in item.key() {
            let is_unbounded = matches!(attribute, "path" | "header.user-agent")
                || attribute.starts_with("query.");
            if !is_unbounded
                || item.shape.lists_values_of(attribute)
                || !seen.insert((entry, attribute.to_owned()))
            {
                continue;
            }
            let message = format!(
                "{} makes a new bucket for every value of {}",
                quoted(&item.limit.name),
                quoted(attribute)
            );
            let help = if attribute == "path" {
                "take `path` out of the key and write a limit for each route, with `match: {path: ...}`".to_owned()
            } else {
                format!(
                    "take {} out of the key, or list its values under `match`",
                    quoted(attribute)
                )
            };
            findings.warn(at, message, help);
        }
    }
}
