//! TG118: a limit that needs responses where no front end sees them.
//!
//! Only the gateway and the tower layer see responses. Not reported: files without `listen`, such
//! as those for the layer, files with a gateway, and limits that are off. Costs are not reported
//! while `http` listens, since its callers can reserve and settle.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::raw;
use crate::settings::Front;

pub(super) const CODE: &Code = &Code::new(
    "TG118",
    "response settings without a gateway",
    "Without a gateway no response passes through Tollgate, so nothing is ever refunded, counted or settled from one.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    if view.compiled.file.listen.is_none() || view.listens(Front::Gateway) {
        return;
    }
    let help = "add `gateway` to `listen`, or use the tower layer in the service itself";
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let name = quoted(item.entry_name());
        if let Some(on_response) = &item.entry.on_response {
            let message =
                format!("`on_response` of {name} needs responses, but no gateway listens");
            findings.warn(on_response.name_at, message, help);
        }
        if let Some(raw::Cost::Form(form)) = item.entry.cost.as_ref().map(|cost| &cost.value)
            && let Some(response) = form.response.as_ref().filter(|_| !view.listens(Front::Http))
        {
            let message = format!("the cost of {name} is in responses, but no gateway listens");
            findings.warn(response.name_at, message, help);
        }
    }
}
