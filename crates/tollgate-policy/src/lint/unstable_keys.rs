//! TG134: a usage trail whose hashed keys change at each start.
//!
//! With the memory store and without `keys_secret`, each process hashes keys with a secret of its
//! own. A report over a restart then has each user twice. Not reported: Redis, which keeps a secret
//! for its nodes, and policies whose limits have no keys or show them.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::settings::Store;

pub(super) const CODE: &Code = &Code::new(
    "TG134",
    "usage of keys that change at each start",
    "Each start hashes keys anew, so a usage report over a restart splits each user.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let settings = &view.compiled.settings;
    let Some(usage) = &view.compiled.file.usage else { return };
    if settings.keys_secret.is_some() || !matches!(settings.store, Store::Memory { .. }) {
        return;
    }
    let is_hashed = |limit: &crate::limit::Limit| {
        !limit.show_keys && limit.keys().any(|attributes| !attributes.is_empty())
    };
    let hashed = view.first_of_each_entry().find(|item| item.is_on() && is_hashed(item.limit));
    if let Some(item) = hashed {
        let name = quoted(item.entry_name());
        let message = format!("each start hashes the keys of {name} anew, so `usage` splits users");
        let help = "set `keys_secret`, or `show_keys: true` on the limits";
        findings.warn(usage.at, message, help);
    }
}
