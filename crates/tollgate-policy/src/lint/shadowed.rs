//! TG113: a limit that never decides a request.
//!
//! Limit B shadows limit A if both are enforced and all of this holds:
//!
//! * B covers every request of A, has the same key attributes in any order, and charges at least as
//!   much.
//! * B is at least as tight for every tier, with the same algorithm (gcra equals token-bucket):
//!   - fixed-window, sliding-window: N is no larger, and B's period is a multiple of A's;
//!   - sliding-log: N is no larger, and the period is no shorter;
//!   - token-bucket, gcra: the burst is no larger, and the rate is no faster;
//!   - leaky-bucket: the rate is equal; burst, and burst plus queue, are no larger;
//!   - concurrency: B has no more slots, and holds them no shorter.
//! * B keeps one count for all tiers, so a change of tier does not reset it.
//! * B is as strict if an attribute is missing or the store fails, and is not leased.
//!
//! Not reported: limits with a penalty, limits in shadow or off, and different keys:
//! `keys: [[ip, user], [ip]]` gives both one rate on purpose. If two limits shadow each other, the
//! later one is reported.

use super::Findings;
use super::analysis::view::{CoverSearch, LintView, LintedLimit};
use super::analysis::written_params::{WrittenParams, WrittenParamsByTier};
use crate::diagnostic::{Code, quoted};
use crate::limit::{Consistency, CostRule, Limit, OnInvalid, OnMissing, OnStoreFailure};
use crate::raw::Algorithm;

pub(super) const CODE: &Code = &Code::new(
    "TG113",
    "limit that another shadows",
    "The other limit already refuses all that this one would, so this one only costs time. One of the two is a mistake.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    for item in view.limits.iter().filter(|item| item.refuses() && item.limit.penalty.is_none()) {
        let by = view.find_covering_with_same_key(item, |other| {
            let is_mutual = || item.shape.covers(other.shape) && shadows(item, other);
            shadows(other, item) && (other.index < item.index || !is_mutual())
        });
        let CoverSearch::Found(other) = by else { continue };
        let (name, by) = (quoted(&item.limit.name), quoted(&other.limit.name));
        let message = format!(
            "{name} never refuses what {by} in line {} admits: {by} covers the same requests and is as strict",
            other.at().line
        );
        findings.warn(item.at(), message, format!("remove {name}, or make it stricter than {by}"));
    }
}

/// Whether `other`, which covers `item`, refuses every request that `item` refuses.
fn shadows(other: &LintedLimit<'_>, item: &LintedLimit<'_>) -> bool {
    has_same_keys(other.limit, item.limit)
        && costs_as_much(other, item)
        && is_as_strict(other, item)
        && other.limit.consistency == Consistency::Exact
        && is_as_tight(other.params(), item.params())
}

/// Whether both limits have the same keys in the same order, each with the same attributes in any
/// order.
fn has_same_keys(other: &Limit, item: &Limit) -> bool {
    let same = |other: &[Box<str>], item: &[Box<str>]| {
        item.len() == other.len() && item.iter().all(|attribute| other.contains(attribute))
    };
    let (others, items) = (other.keys(), item.keys());
    others.len() == items.len() && others.zip(items).all(|(other, item)| same(other, item))
}

/// Whether each request costs at least as much under `other`.
fn costs_as_much(other: &LintedLimit<'_>, item: &LintedLimit<'_>) -> bool {
    other.limit.cost == item.limit.cost
        || match (&other.limit.cost, &item.limit.cost) {
            (CostRule::Estimate { .. } | CostRule::Attribute { .. }, _)
            | (_, CostRule::Estimate { .. } | CostRule::Attribute { .. }) => false,
            (
                CostRule::Fixed(_) | CostRule::ByMatch(_),
                CostRule::Fixed(_) | CostRule::ByMatch(_),
            ) => other.costs().0 >= item.costs().1,
        }
}

/// Whether `other` is at least as strict when an attribute is missing or the store fails.
fn is_as_strict(other: &LintedLimit<'_>, item: &LintedLimit<'_>) -> bool {
    let (theirs, ours) = (other.limit.on_missing, item.limit.on_missing);
    let missing = theirs == ours || ours == OnMissing::Skip || theirs == OnMissing::Refuse;
    let invalid = other.limit.on_invalid == item.limit.on_invalid
        || item.limit.on_invalid == OnInvalid::AsMissing;
    let (theirs, ours) = (other.limit.on_store_failure, item.limit.on_store_failure);
    let failed = theirs == ours || ours == OnStoreFailure::Open || theirs == OnStoreFailure::Closed;
    (item.limit.key.is_empty() || missing) && invalid && failed
}

fn is_as_tight(other: &WrittenParamsByTier<'_>, item: &WrittenParamsByTier<'_>) -> bool {
    let family = |algorithm| match algorithm {
        Algorithm::TokenBucket => Algorithm::Gcra,
        algorithm => algorithm,
    };
    let algorithm = family(item.algorithm);
    let names = other.tiers.iter().chain(&item.tiers).map(|(name, _, _)| *name);
    let mut tiers = names.map(|name| (other.of(name), item.of(name)));
    family(other.algorithm) == algorithm
        && other.zone == item.zone
        && other.has_one_period()
        && tighter(algorithm, other.base.0, item.base.0)
        && tiers.all(|(other, item)| tighter(algorithm, other, item))
}

fn tighter(algorithm: Algorithm, other: WrittenParams, item: WrittenParams) -> bool {
    match (other, item) {
        (_, WrittenParams::Unlimited) => true,
        (
            WrittenParams::Slots { slots, ttl_us },
            WrittenParams::Slots { slots: ours, ttl_us: our_ttl_us },
        ) => slots <= ours && ttl_us >= our_ttl_us,
        (
            WrittenParams::Per { count: n, period_us: p, burst: b, queue: q, calendar },
            WrittenParams::Per {
                count: our_n,
                period_us: our_p,
                burst: our_b,
                queue: our_q,
                calendar: ours,
            },
        ) => {
            // Compares N/p without division.
            let (rate, our_rate) =
                (u128::from(n) * u128::from(our_p), u128::from(our_n) * u128::from(p));
            match algorithm {
                // Windows that begin at different times can admit more together than each alone.
                Algorithm::FixedWindow | Algorithm::SlidingWindow => {
                    calendar == ours && n <= our_n && p.is_multiple_of(our_p)
                }
                Algorithm::SlidingLog => n <= our_n && p >= our_p,
                Algorithm::Gcra | Algorithm::TokenBucket => b <= our_b && rate <= our_rate,
                Algorithm::LeakyBucket => {
                    rate == our_rate
                        && b <= our_b
                        && b.saturating_add(q) <= our_b.saturating_add(our_q)
                }
                Algorithm::Concurrency => false,
            }
        }
        _ => false,
    }
}
