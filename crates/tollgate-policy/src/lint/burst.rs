//! TG112: a burst far above the rate.
//!
//! Not reported: bursts up to ten times N, `0/...` (which refuses everything), and limits that are
//! off. Tiers of a reported limit are not reported: they usually inherit its burst.

use super::Findings;
use super::analysis::view::LintView;
use super::analysis::written_params::WrittenParams;
use crate::diagnostic::{Code, quoted};
use crate::raw::Algorithm;

pub(super) const CODE: &Code = &Code::new(
    "TG112",
    "burst above ten times the rate",
    "An idle client can send the whole burst at once, so for a long time the burst is the limit, not the rate.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        let all = item.params();
        let is_bucket = matches!(
            all.algorithm,
            Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket
        );
        let (base, base_at) = all.base;
        let tiers = all.tiers.iter().map(|(name, figures, at)| (Some(*name), *figures, *at));
        let mut figures = [(None, base, base_at)].into_iter().chain(tiers);
        let large = figures.find_map(|(tier, figures, at)| match figures {
            WrittenParams::Per { count, burst, .. }
                if is_bucket && count > 0 && burst > count.saturating_mul(10) =>
            {
                Some((tier, count, burst, at))
            }
            _ => None,
        });
        let Some((tier, count, burst, at)) = large else { continue };
        let name = item.entry_name();
        let of = tier.map(|tier| format!(" for the tier {}", quoted(tier))).unwrap_or_default();
        let message = format!(
            "the burst of {}{of} is {burst}, more than ten times its rate of {count}",
            quoted(name)
        );
        let help =
            format!("lower the burst to {} or less, or give the rate a longer period", count * 10);
        findings.warn(at, message, help);
    }
}
