//! TG121: an entry of a cost list that no request can match.
//!
//! Reported: an entry that an earlier one covers, and an entry whose conditions never hold together
//! with the limit's own `match`. Only proven cases are reported. Not reported: limits that are off.

use super::Findings;
use super::analysis::cover::ComparableMatch;
use super::analysis::cover_index::{CoverIndex, IndexedBy};
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::limit::CostRule;
use crate::raw;

pub(super) const CODE: &Code = &Code::new(
    "TG121",
    "cost entry that no request uses",
    "The first entry that matches counts, so an entry behind one that matches the same requests is never used.",
);

/// The most earlier entries that each entry is compared with.
const COMPARED_MAX: usize = 500;

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let Some(raw::Cost::ByMatch(entries)) = item.entry.cost.as_ref().map(|cost| &cost.value)
        else {
            continue;
        };
        let CostRule::ByMatch(weighted) = &item.limit.cost else { continue };
        let (_, of_limit) = &view.compiled.limits[item.index];
        let own: Vec<_> =
            weighted.iter().map(|entry| ComparableMatch::new(&entry.match_spec)).collect();
        let index = own.iter().enumerate().map(|(place, shape)| (place, 0, shape));
        let index = CoverIndex::new(index, IndexedBy::Rarest);
        let name = quoted(item.entry_name());
        for (place, (entry, weight)) in entries.iter().zip(weighted).enumerate() {
            let requests = ComparableMatch::both(of_limit, &weight.match_spec);
            if requests.is_impossible() {
                let message = format!(
                    "no request uses this cost of {name}: the limit applies to none that match the entry"
                );
                findings.warn(entry.at, message, "remove the entry, or correct its `match`");
                continue;
            }
            let earlier = index.covering(0, &requests).take_while(|earlier| *earlier < place);
            let by = earlier.take(COMPARED_MAX).find(|earlier| own[*earlier].covers(&requests));
            let Some(by) = by.and_then(|by| entries.get(by)) else { continue };
            let message = format!(
                "no request uses this cost of {name}: the entry in line {} matches first",
                by.at.line
            );
            findings.warn(
                entry.at,
                message,
                "put the narrower entry first, or remove one of the two",
            );
        }
    }
}
