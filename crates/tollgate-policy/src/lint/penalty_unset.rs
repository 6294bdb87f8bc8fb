//! TG135: statuses that count as refusals under a `penalty` that the limit does not have.
//!
//! Not reported for limits that are off.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};

pub(super) const CODE: &Code = &Code::new(
    "TG135",
    "statuses for a penalty that is not there",
    "`on_response.penalty` names responses that count as refusals under the limit's `penalty`. Without a `penalty` they change nothing.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let statuses = item.entry.on_response.as_ref().and_then(|one| one.value.penalty.as_ref());
        let Some(statuses) = statuses else { continue };
        if item.limit.penalty.is_none() && !item.limit.on_response.penalty.is_empty() {
            let name = quoted(item.entry_name());
            let message =
                format!("`on_response.penalty` of {name} does nothing: it has no `penalty`");
            let help = "add `penalty: {after: 5, block: 1m}` to the limit, or remove the statuses";
            findings.warn(statuses.name_at, message, help);
        }
    }
}
