//! TG125: a local rate that admits more than its limit, at once or in the long run.
//!
//! `on_store_failure: {local: {rate: 20/min}}` for 1000/day is stricter in every minute, but after
//! fifty minutes one node has admitted more than the whole limit. Not reported: limits that are
//! off, and a rate from the file's default. A rate that is looser in both respects is an error.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::grammar;
use crate::limit::OnStoreFailure;
use tollgate_core::{Algorithm, LimitParams};

pub(super) const CODE: &Code = &Code::new(
    "TG125",
    "local rate that exceeds the limit",
    "While the store fails, one node admits more than the limit does: at once, or after a while.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let OnStoreFailure::LocalRate(rate) = item.limit.on_store_failure else { continue };
        let (Some(field), Some(limit)) = (&item.entry.on_store_failure, item.limit.params) else {
            continue;
        };
        let local = rate.params(&limit);
        let (in_long_run, at_once) = local.compare(&limit);
        let name = quoted(item.entry_name());
        let (message, help) = if at_once.is_gt() {
            let message = format!(
                "one node admits {} at once while the store fails; {name} admits {}",
                local.capacity(),
                limit.capacity()
            );
            (message, "write a shorter period with a smaller number, such as `20/min`")
        } else if in_long_run.is_gt() {
            let after = grammar::format_us(after_us(&local, &limit));
            let message = format!(
                "in an outage of more than {after}, one node admits more than the whole limit {name}"
            );
            (message, "lower the rate, or allow this warning if outages are shorter than that")
        } else {
            continue;
        };
        findings.warn(field.at, message, help);
    }
}

/// The time in which one node admits the whole limit, rounded down to seconds if it is longer than
/// one.
fn after_us(local: &LimitParams, limit: &LimitParams) -> u64 {
    let units = u128::from(limit.capacity()) * u128::from(local.period_us());
    let us = units / u128::from(local.count().max(1));
    let us = u64::try_from(us).unwrap_or(u64::MAX);
    if us < 1_000_000 { us } else { us / 1_000_000 * 1_000_000 }
}
