//! TG104: a login whose limits all fail open.
//!
//! Not reported if one limit that covers the path has `closed` or `local`. Reported for the memory
//! store too: the memory store does not fail, but the file may be used with Redis later.

use super::{is_login_like, matched_paths, targets};
use crate::diagnostic::{Code, quoted};
use crate::limit::OnStoreFailure;
use crate::lint::Findings;
use crate::lint::analysis::view::{LintView, LintedLimit};

pub(crate) const CODE: &Code = &Code::new(
    "TG104",
    "login that fails open",
    "A client that slows down or overloads the store gets unlimited attempts.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for target in targets(view) {
        let is_open = |on: OnStoreFailure| on == OnStoreFailure::Open;
        if target.guards.iter().any(|item| !is_open(item.limit.on_store_failure)) {
            continue;
        }
        let Some(first) = target.guards.first() else { continue };
        let path = quoted(target.path);
        let message =
            format!("every limit on {path} admits all attempts when the store cannot decide");
        let names_login = |item: &&&LintedLimit<'_>| {
            matched_paths(&item.entry.value).any(|(path, _)| is_login_like(path))
        };
        // A limit on other requests too must not become `closed`: that would close the whole site.
        let help = match target.guards.iter().find(names_login) {
            Some(own) => {
                let own = quoted(own.entry_name());
                format!("add `on_store_failure: closed` to {own}, or `local`")
            }
            None => format!(
                "give {path} its own limit with `on_store_failure: closed`, or add `on_store_failure: local` to {}",
                quoted(first.entry_name())
            ),
        };
        findings.warn(target.at, message, help);
    }
}
