//! Subtracts requests that were shed after their limits had admitted them.
//!
//! A summary cannot subtract units, because the key may have been evicted or collected meanwhile.
//! So these units have a summary of their own, which readers subtract.

#[cfg(test)]
mod tests;

use super::summary::{HeavyKey, Summary};
use super::{TopKeys, TopMeasure};
use std::collections::HashMap;
use tollgate::engine::{Rules, ShedReason, Verdict};
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::Selection;

/// A request that the limits have counted.
pub struct CountedRequest<'a, 'f> {
    /// The rules that decided.
    pub rules: &'a Rules,
    /// The attributes of the request.
    pub facts: &'a Facts<'f>,
    /// The request's cost.
    pub cost: u64,
    /// The verdict of the limits.
    pub verdict: &'a Verdict<'a>,
}

impl TopKeys {
    /// Subtracts a request that the node shed after its limits had admitted it. Shedding by the
    /// fleet happens together with the limits, so those requests were never counted.
    #[inline]
    pub fn take_off_shed(&self, now_us: u64, request: &CountedRequest<'_, '_>) {
        let reason = request.verdict.shed.and_then(|shed| shed.reason);
        if matches!(reason, Some(ShedReason::Adaptive | ShedReason::Queue)) {
            self.take_off(now_us, request);
        }
    }

    #[cold]
    fn take_off(&self, now_us: u64, request: &CountedRequest<'_, '_>) {
        let policy = request.rules.policy();
        let mut selection = Selection::default();
        // A limit that refuses in shadow mode has charged nothing.
        for row in request.verdict.rows.iter().filter(|row| row.outcome.admitted) {
            let Some(limit) = policy.position(&row.limit.name) else { continue };
            policy.select_one(limit, request.facts, request.cost, &mut selection);
            for selected in policy.selected(&selection).filter(|one| one.cost > 0) {
                let measure = TopMeasure::ShedAdmitted;
                self.counter().add(now_us, &selected, &row.outcome, selected.cost, measure);
            }
        }
    }
}

/// Subtracts summary `off` from `all`; also returns the units of all keys. The bounds stay valid:
/// the new minimum is the old minimum less the most that was subtracted.
pub(super) fn take_off(all: &Summary, off: &Summary) -> (Vec<HeavyKey>, u64) {
    let given_back: HashMap<u64, HeavyKey> =
        off.keys().into_iter().map(|key| (key.hash, key)).collect();
    let mut keys = all.keys();
    for key in &mut keys {
        let (least, most) = match given_back.get(&key.hash) {
            Some(off) => (off.units.saturating_sub(off.error), off.units),
            None => (0, off.floor()),
        };
        let at_least = key.units.saturating_sub(key.error).saturating_sub(most);
        key.units = key.units.saturating_sub(least);
        key.error = key.units.saturating_sub(at_least);
    }
    keys.retain(|key| key.units > 0);
    keys.sort_by(|a, b| b.units.cmp(&a.units).then(a.hash.cmp(&b.hash)));
    (keys, all.total_units().saturating_sub(off.total_units()))
}
