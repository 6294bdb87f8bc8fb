//! TG131: a node's share of a limit that rounds down to zero.
//!
//! `on_store_failure: {local: {nodes: 3}}` gives each node a third, rounded down. Of a leaky bucket
//! with a burst of 1, or of 2/min, nothing is left, and every request is refused. Not reported:
//! limits that are off or in shadow, which refuse no request.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::limit::{Mode, OnStoreFailure};
use tollgate_core::{Algorithm, LimitParams};

pub(super) const CODE: &Code = &Code::new(
    "TG131",
    "share of a node that is nothing",
    "While the store fails, each node enforces its share of the limit, rounded down. A share of nothing refuses every request.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.limit.mode == Mode::Enforce) {
        let OnStoreFailure::Local { nodes } = item.limit.on_store_failure else { continue };
        let tiers = item.limit.tiers.iter().map(|(name, params)| (Some(name), *params));
        let all = std::iter::once((None, item.limit.params)).chain(tiers);
        let is_empty = |params: &LimitParams| params.share(nodes).capacity() == 0;
        let empty = all.into_iter().find_map(|(tier, params)| {
            params.filter(is_empty).map(|params| (tier, params.capacity()))
        });
        let Some((tier, capacity)) = empty else { continue };
        let name = quoted(item.entry_name());
        let whose = tier.map_or_else(String::new, |tier| format!(" for tier {}", quoted(tier)));
        let message = format!(
            "while the store fails, a node's share of {name}{whose} is {capacity} / {nodes}, rounded down to 0: \
             every request is refused"
        );
        let own = item.entry.on_store_failure.as_ref().map(|field| field.at);
        let at = own.or(item.entry.name.as_ref().map(|name| name.at)).unwrap_or(item.entry.at);
        let help =
            "give each node a rate of its own, such as `{local: {rate: 3/s}}`, or write `closed`";
        findings.warn(at, message, help);
    }
}
