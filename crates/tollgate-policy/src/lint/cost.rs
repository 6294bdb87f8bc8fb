//! TG111: a cost that the client names.
//!
//! Quiet for fixed costs, for estimates that the response settles, for requests' own `cost` on the check API (its caller
//! is trusted), and for limits that are off.

use super::{Findings, view::View};
use crate::diagnostic::Code;
use crate::raw;
use crate::suggest::quoted;

pub(super) const CODE: &Code = &Code::new(
    "TG111",
    "cost that a client can choose",
    "A request that says it costs 0 is always admitted and counts for nothing; `max` bounds only the other side.",
);

pub(super) fn check(view: &View<'_>, findings: &mut Findings<'_>) {
    for item in view.firsts().filter(|item| item.is_on()) {
        let Some(raw::Cost::Form(form)) = item.entry.cost.as_ref().map(|cost| &cost.value) else {
            continue;
        };
        let Some(header) = &form.header else { continue };
        let name = item.entry_name();
        let message = format!(
            "clients choose what a request costs under {}, even 0, with {}",
            quoted(name),
            quoted(&format!("header.{}", &*header.value))
        );
        let help = "use a fixed cost, settle one from the response (`{estimate: 500, response: {json: ...}}`), or let a proxy set the field";
        findings.warn(header.at, message, help);
    }
}
