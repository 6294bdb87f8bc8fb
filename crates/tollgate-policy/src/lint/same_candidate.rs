//! TG130: a candidate with the same parameters as its limit, or of a limit that is off.
//!
//! Such a candidate never decides differently, or is never evaluated. Not reported if any tier
//! differs.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};

pub(super) const CODE: &Code = &Code::new(
    "TG130",
    "candidate that tells nothing",
    "A candidate with the limit's own numbers always decides the same, and one of a limit that is off is not counted.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry() {
        let (Some(candidate), Some(field)) = (&item.limit.candidate, &item.entry.candidate) else {
            continue;
        };
        let name = quoted(item.entry_name());
        if !item.is_on() {
            let message = format!("{name} is off, so its candidate is not counted");
            findings.warn(field.at, message, "write `mode: shadow` to count both, or remove it");
        } else if Some(candidate.params) == item.limit.params && candidate.tiers == item.limit.tiers
        {
            let message = format!("the candidate of {name} has the same numbers as the limit");
            findings.warn(field.at, message, "change a number, or remove the candidate");
        }
    }
}
