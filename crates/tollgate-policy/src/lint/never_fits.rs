//! TG116: a cost that is larger than its limit can ever admit.
//!
//! Checks fixed costs, each entry of a cost list, estimates, and the default cost. Not reported:
//! `0/...` (which refuses everything on purpose), limits that are off, and tiers of a limit that is
//! reported already.

use super::Findings;
use super::analysis::view::LintView;
use super::analysis::written_params::{WrittenParams, WrittenParamsByTier};
use crate::diagnostic::{Code, Position, quoted};
use crate::raw::{self, Algorithm};

pub(super) const CODE: &Code = &Code::new(
    "TG116",
    "cost that never fits",
    "A request that costs more than the limit holds is always refused, even with no other traffic.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.first_of_each_entry().filter(|item| item.is_on()) {
        for (what, cost, at) in item.entry.cost.iter().flat_map(up_front) {
            let Some((tier, most)) = too_small(item.params(), cost) else { continue };
            let of = tier.map(|tier| format!(" for the tier {}", quoted(tier))).unwrap_or_default();
            let message = format!(
                "{what} of {cost} never fits in {}{of}, which holds {most}",
                quoted(item.entry_name())
            );
            findings.warn(at, message, format!("lower it to {most} or less, or raise the limit"));
        }
    }
}

/// Returns the limit itself (`None`) or the first tier that holds less than the cost, and how much
/// it holds.
fn too_small<'a>(all: &WrittenParamsByTier<'a>, cost: u64) -> Option<(Option<&'a str>, u64)> {
    let base = [(None, all.base.0)].into_iter();
    let tiers = all.tiers.iter().map(|(name, figures, _)| (Some(*name), *figures));
    let holds = |figures| capacity(all.algorithm, figures).filter(|most| (1..cost).contains(most));
    base.chain(tiers).find_map(|(tier, figures)| Some((tier, holds(figures)?)))
}

/// Returns the costs that are known before the response.
fn up_front(cost: &raw::At<raw::Cost>) -> Vec<(&'static str, u64, Position)> {
    let of =
        |what, field: &raw::Field<u64>| field.as_ref().map(|field| (what, field.value, field.at));
    match &cost.value {
        raw::Cost::Fixed(fixed) => vec![("the cost", *fixed, cost.at)],
        raw::Cost::Form(form) => of("the estimate", &form.estimate)
            .or_else(|| of("the default", &form.default))
            .into_iter()
            .collect(),
        raw::Cost::ByMatch(entries) => {
            entries.iter().filter_map(|entry| of("the cost", &entry.units)).collect()
        }
    }
}

/// The most units that one request can take; `None` if unlimited or zero.
fn capacity(algorithm: Algorithm, figures: WrittenParams) -> Option<u64> {
    match (figures, algorithm) {
        (WrittenParams::Unlimited, _) => None,
        (WrittenParams::Slots { slots, .. }, _) => Some(slots),
        (WrittenParams::Per { count: 0, .. }, _) => None,
        (WrittenParams::Per { burst, .. }, Algorithm::TokenBucket | Algorithm::Gcra) => Some(burst),
        (WrittenParams::Per { burst, queue, .. }, Algorithm::LeakyBucket) => Some(burst + queue),
        (WrittenParams::Per { count, .. }, _) => Some(count),
    }
}
