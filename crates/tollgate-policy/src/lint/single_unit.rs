//! TG132: a sliding window of one unit.
//!
//! A client that keeps trying is admitted N - 1 times in each window after its first. With N = 1 it
//! is admitted once in two windows, since a unit of the previous window weighs until that window is
//! over. Not reported: limits that are off or in shadow, which refuse no request.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use tollgate_core::{Algorithm, LimitParams};

pub(super) const CODE: &Code = &Code::new(
    "TG132",
    "sliding window of one unit",
    "A sliding window admits a client that keeps trying once in two windows, not once in each.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.refuses()) {
        let tiers = item.limit.tiers.iter().map(|(name, params)| (Some(name), *params));
        let all = std::iter::once((None, item.limit.params)).chain(tiers);
        let single = |params: &LimitParams| matches!(params, LimitParams::SlidingWindow(window) if window.capacity() == 1);
        let Some((tier, _)) =
            all.into_iter().find(|(_, params)| params.as_ref().is_some_and(single))
        else {
            continue;
        };
        let name = quoted(item.entry_name());
        let whose = tier.map_or_else(String::new, |tier| format!(" for tier {}", quoted(tier)));
        let message = format!(
            "the sliding window of {name}{whose} has one unit: a client that keeps trying is admitted once in two windows"
        );
        let written = [
            item.entry.algorithm.as_ref().map(|field| field.at),
            item.entry.rate.as_ref().map(|field| field.at),
            item.entry.name.as_ref().map(|field| field.at),
        ];
        let at = written.into_iter().flatten().next().unwrap_or(item.entry.at);
        findings.warn(at, message, "use `algorithm: gcra`, or `fixed-window`");
    }
}
