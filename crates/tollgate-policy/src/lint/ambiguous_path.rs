//! TG123: a path pattern that matches no request, because requests with such a path are refused.
//!
//! Not reported: files in which a listener has `ambiguous_paths: match-all`, files in which no
//! listener reads paths, and limits that are off.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::path::ambiguity;
use crate::settings::AmbiguousPaths;

pub(super) const CODE: &Code = &Code::new(
    "TG123",
    "pattern for an ambiguous path",
    "Servers read such a path in more than one way, so Tollgate refuses the request before it asks any limit.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let is_counted = view.compiled.settings.ambiguous_paths() == AmbiguousPaths::MatchAll;
    if !view.reads_requests() || is_counted {
        return;
    }
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let Some(spec) = &item.entry.r#match else { continue };
        let paths = spec.conditions.0.iter().filter(|(attribute, _)| attribute.value == "path");
        for pattern in paths.flat_map(|(_, patterns)| &patterns.0) {
            // In a pattern `?` is a wildcard and does not start a query.
            if let Some(why) = ambiguity(&pattern.replace('?', "*")) {
                let message = format!("{} matches no request: {why}", quoted(pattern));
                let help = "write the path as the service names it, or set `ambiguous_paths: match-all` on the listener";
                findings.warn(pattern.at, message, help);
            }
        }
    }
}
