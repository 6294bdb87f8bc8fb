//! TG119: a queue that is longer than clients wait.
//!
//! The last request in a full queue waits for `queue` times the period divided by N. Behind a
//! gateway the longest sensible wait is `upstream.timeouts.response`, elsewhere an hour. Not
//! reported: `0/...`, limits that are off, and tiers of a limit that is reported already.

use super::Findings;
use super::analysis::view::LintView;
use super::analysis::written_params::WrittenParams;
use crate::diagnostic::{Code, quoted};
use crate::grammar;
use crate::raw::Algorithm;
use crate::settings::Front;

pub(super) const CODE: &Code = &Code::new(
    "TG119",
    "queue longer than clients wait",
    "Clients give up before their turn, and their places stay taken until then.",
);

const HOUR_US: u128 = 3_600_000_000;

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let (patience_us, whose) = if view.listens(Front::Gateway) {
        let response = view.compiled.settings.gateway.response;
        (response.as_micros(), " (`upstream.timeouts.response`)")
    } else {
        (HOUR_US, "")
    };
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let all = item.params();
        if all.algorithm != Algorithm::LeakyBucket {
            continue;
        }
        let base = [all.base.0].into_iter();
        let mut figures = base.chain(all.tiers.iter().map(|(_, figures, _)| *figures));
        let long = figures.find_map(|figures| match figures {
            WrittenParams::Per { count, period_us, queue, .. } if count > 0 => {
                let wait_us = u128::from(queue) * u128::from(period_us) / u128::from(count);
                let fits = patience_us * u128::from(count) / u128::from(period_us);
                (wait_us > patience_us).then_some((wait_us, fits))
            }
            _ => None,
        });
        let Some((wait_us, fits)) = long else { continue };
        let shown = |us: u128| grammar::format_us(seconds(us));
        let message = format!(
            "the last request in the queue of {} waits {}, longer than {}{whose}",
            quoted(item.entry_name()),
            shown(wait_us),
            shown(patience_us)
        );
        let at = item.entry.queue.as_ref().map_or_else(|| item.at(), |queue| queue.at);
        findings.warn(at, message, format!("lower the queue to {fits} or less, or raise the rate"));
    }
}

/// Converts to 64 bits, and rounds up to whole seconds unless it is less than one.
fn seconds(us: u128) -> u64 {
    let us = u64::try_from(us).unwrap_or(u64::MAX);
    if us < 1_000_000 { us } else { us.div_ceil(1_000_000).saturating_mul(1_000_000) }
}
