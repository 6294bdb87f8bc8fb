//! TG102: a fixed window without another limit beside it.
//!
//! Not reported if any other enforced limit covers the same requests, whatever its key or
//! algorithm: a second, shorter window is the usual fix. Also not reported: limits in shadow or
//! off, rates that refuse everything, and calendar windows, since a monthly quota must start anew.

use super::Findings;
use super::analysis::view::{CoverSearch, LintView};
use super::analysis::written_params::WrittenParams;
use crate::diagnostic::{Code, quoted};
use crate::raw::Algorithm;

pub(super) const CODE: &Code = &Code::new(
    "TG102",
    "fixed window as the only limit",
    "A client can send twice the rate around the end of a window: N just before, N just after.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.limits.iter().filter(|item| item.refuses()) {
        let Some(algorithm) = &item.entry.algorithm else { continue };
        let is_meant = matches!(
            item.params().base.0,
            WrittenParams::Per { count: 0, .. } | WrittenParams::Per { calendar: Some(_), .. }
        );
        if algorithm.value != Algorithm::FixedWindow
            || is_meant
            || !matches!(view.find_covering(item, |_| true), CoverSearch::None)
        {
            continue;
        }
        let name = quoted(&item.limit.name);
        let message = format!(
            "the fixed window of {name} admits twice its rate around each boundary, and no other limit covers the same requests"
        );
        let help = "use `algorithm: sliding-window`, or add a limit with a shorter period";
        findings.warn(algorithm.at, message, help);
    }
}
