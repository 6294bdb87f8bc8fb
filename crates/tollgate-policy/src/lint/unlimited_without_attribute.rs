//! TG109: requests without an attribute that no limit covers.
//!
//! Reported: an enforced limit that skips requests without an attribute of its key, if no other
//! enforced limit covers the same requests. The attribute may come from the client's own request
//! (`host`, header, cookie, query or `identity`). Then limits that are skipped without the same
//! attribute do not count as cover. Of such limits, the widest one is reported, once.
//!
//! A limit with `first_of` is skipped if none of its keys is complete. The reported attribute
//! belongs to the last key.
//!
//! Not reported: `ip`, `method`, `path` and `domain`, and attributes on which `match` has a
//! condition, since the limit is not about requests without them. Also not reported: several limits
//! on an attribute that only callers of the check API supply, since those callers send it with
//! every request.

use super::Findings;
use super::analysis::view::{CoverSearch, LintView, LintedLimit};
use super::client_chosen;
use crate::diagnostic::{Code, quoted};
use crate::limit::OnMissing;

pub(super) const CODE: &Code = &Code::new(
    "TG109",
    "only limit can be skipped",
    "A limit skips requests that lack an attribute of its key, so a client gets around the limit by leaving it out.",
);

const ALWAYS: [&str; 4] = ["ip", "method", "path", "domain"];

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.limits.iter().filter(|item| item.refuses()) {
        let Some(last) = item.keys().last().filter(|_| can_be_skipped(item)) else { continue };
        let mut missing = last.filter(|(attribute, _)| may_be_missing(item, attribute));
        let Some((attribute, at)) = missing.find(|(attribute, _)| is_alone(view, item, attribute))
        else {
            continue;
        };
        let (name, attribute) = (quoted(&item.limit.name), quoted(attribute));
        let message = format!(
            "requests without {attribute} are not limited: {name} skips them, and no other limit covers all of them"
        );
        let help = "add `on_missing: refuse` or `share`, or a limit by `ip` for the same requests";
        findings.warn(at, message, help);
    }
}

/// Whether each key has an attribute that a request may lack.
fn can_be_skipped(item: &LintedLimit<'_>) -> bool {
    let lacks = |key: &[Box<str>]| key.iter().any(|attribute| may_be_missing(item, attribute));
    item.limit.on_missing == OnMissing::Skip && item.limit.keys().all(lacks)
}

fn may_be_missing(item: &LintedLimit<'_>, attribute: &str) -> bool {
    !ALWAYS.contains(&attribute) && !item.shape.requires(attribute)
}

fn is_skipped_without(item: &LintedLimit<'_>, attribute: &str) -> bool {
    item.limit.on_missing == OnMissing::Skip
        && item.limit.keys().all(|key| key.iter().any(|part| **part == *attribute))
        && may_be_missing(item, attribute)
}

/// Whether no other limit catches requests without the attribute, and no other such limit is
/// reported instead.
fn is_alone<'a>(view: &LintView<'a>, item: &LintedLimit<'a>, attribute: &str) -> bool {
    let is_sent = is_sent(view, attribute);
    let is_reported_instead =
        |other: &LintedLimit<'_>| other.index < item.index || !item.shape.covers(other.shape);
    let catches = |other: &LintedLimit<'_>| {
        !is_sent || !is_skipped_without(other, attribute) || is_reported_instead(other)
    };
    matches!(view.find_covering(item, catches), CoverSearch::None)
}

fn is_sent(view: &LintView<'_>, attribute: &str) -> bool {
    view.reads_requests()
        && (client_chosen::is_sent(attribute) || view.identity(attribute).is_some())
}
