//! TG133: windows below a second on the nodes' own clocks.
//!
//! With `time: caller`, nodes whose clocks differ by more than a window reset each other's windows.
//! Clocks that are synchronised over a network may differ by tens of milliseconds. Not reported:
//! buckets and slots, which wait for a clock that is up to a second behind, and limits that are off
//! or in shadow.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::settings::Store;
use tollgate_core::{Algorithm, LimitParams};

const WINDOW_US_MIN: u64 = 1_000_000;

pub(super) const CODE: &Code = &Code::new(
    "TG133",
    "short window on the clocks of nodes",
    "With `time: caller`, nodes whose clocks differ by more than a window admit more than the limit.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let Store::Redis(redis) = &view.compiled.settings.store else { return };
    if !redis.caller_time {
        return;
    }
    let is_short = |params: &LimitParams| {
        let is_window = matches!(
            params,
            LimitParams::FixedWindow(_)
                | LimitParams::SlidingWindow(_)
                | LimitParams::SlidingLog(_)
        );
        is_window && params.window_us().is_some_and(|window_us| window_us < WINDOW_US_MIN)
    };
    for item in view.first_of_each_entry().filter(|item| item.refuses()) {
        // The limit itself or any tier may have the short window.
        let params =
            item.limit.params.iter().chain(item.limit.tiers.iter().flat_map(|tier| &tier.1));
        if !params.into_iter().any(is_short) {
            continue;
        }
        let name = quoted(item.entry_name());
        let message = format!(
            "the window of {name} is shorter than a second, and `time: caller` counts it by the clock of each node"
        );
        let rate = item.entry.rate.as_ref().map(|field| field.at);
        let at = rate.or(item.entry.name.as_ref().map(|name| name.at)).unwrap_or(item.entry.at);
        let help = "use `time: server`, `algorithm: gcra`, or a longer period";
        findings.warn(at, message, help);
    }
}
