//! TG111: a cost that the client names.
//!
//! Reported: a cost that is read from a header. Also reported: an entry of a cost list by which a
//! client pays less when it sends a header (`host` is one), cookie or query parameter. Not
//! reported: fixed costs, estimates that the response settles, and limits that are off. `cost` on
//! the check API is not reported either, since its caller is trusted.

use super::client_controlled_source;
use crate::diagnostic::{Code, quoted};
use crate::limit::CostRule;
use crate::lint::Findings;
use crate::lint::analysis::cover::ComparableMatch;
use crate::lint::analysis::view::{LintView, LintedLimit};
use crate::raw;

pub(crate) const CODE: &Code = &Code::new(
    "TG111",
    "cost that a client can choose",
    "A request that claims to cost 0 is always admitted and counts for nothing; `max` bounds only high costs.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        match item.entry.cost.as_ref().map(|cost| &cost.value) {
            Some(raw::Cost::Form(form)) => from_header(item, form, findings),
            Some(raw::Cost::ByMatch(entries)) => by_match(view, item, entries, findings),
            Some(raw::Cost::Fixed(_)) | None => {}
        }
    }
}

fn from_header(item: &LintedLimit<'_>, form: &raw::CostForm, findings: &mut Findings<'_>) {
    let Some(header) = &form.header else { return };
    let message = format!(
        "clients choose what {} charges, even 0, with {}",
        quoted(item.entry_name()),
        quoted(&format!("header.{}", &*header.value))
    );
    let help = "use a fixed cost, settle one from the response (`{estimate: 500, response: {json: ...}}`), or have a proxy set the header";
    findings.warn(header.at, message, help);
}

/// Checks the entries of a cost list. Only conditions that lower the cost are reported: a parameter
/// may raise it.
fn by_match(
    view: &LintView<'_>,
    item: &LintedLimit<'_>,
    entries: &[raw::At<raw::CostEntry>],
    findings: &mut Findings<'_>,
) {
    let CostRule::ByMatch(weighted) = &item.limit.cost else { return };
    // The least and the largest cost of the entries after this one, and of a request that matches
    // none.
    let (mut least, mut most) = (1, 1);
    let mut found = Vec::new();
    for (entry, weight) in entries.iter().zip(weighted).rev() {
        let shape = ComparableMatch::new(&weight.match_spec);
        let lowers = shape.conditions().map(|(attribute, _)| attribute);
        let lowers = lowers.filter(|_| weight.units < most);
        let escapes = shape.excluded().filter(|_| weight.units > least);
        let mut chosen =
            lowers.chain(escapes).filter_map(|attribute| client_controlled_source(view, attribute));
        found.extend(chosen.next().map(|source| (entry.at, source)));
        (least, most) = (least.min(weight.units), most.max(weight.units));
    }
    for (at, source) in found.into_iter().rev() {
        let (name, source) = (quoted(item.entry_name()), quoted(&source));
        let message = format!("clients can pay less under {name} by choosing {source}");
        let help = "charge more, never less, for what clients send, or take it from a verified token (`jwt.plan` in `identity`)";
        findings.warn(at, message, help);
    }
}
