//! Requests of the gateway by tier and outcome.

use super::family_writer::{FamilyType, FamilyWriter};
use super::{Outcome, Striped, add, lock};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tollgate::engine::{Rules, Verdict};
use tollgate_policy::facts::Facts;

/// The label of requests whose tier the policy does not name.
const OTHER: &str = "other";
/// The outcomes of decisions.
const OUTCOMES: [Outcome; 4] =
    [Outcome::Admitted, Outcome::Refused, Outcome::FailClosed, Outcome::Shed];

/// The counters of all tiers. Only the policy names tiers, so clients cannot add label values.
/// Tiers of an earlier file keep their counters: a counter never decreases.
#[derive(Debug, Default)]
pub(super) struct TierMetrics {
    by_name: Mutex<BTreeMap<Box<str>, Arc<TierCounters>>>,
    /// The counters in the order of the policy's tiers.
    of_rules: ArcSwap<RulesTiers>,
}

/// The counters of the tiers of one policy. The last one counts all other requests.
#[derive(Debug, Default)]
struct RulesTiers {
    generation: u64,
    counters: Vec<Arc<TierCounters>>,
}

type TierCounters = Striped<TierStripe>;

/// The counters of one thread for one tier.
#[derive(Debug, Default)]
#[repr(align(128))]
struct TierStripe([AtomicU64; OUTCOMES.len()]);

impl TierMetrics {
    /// Counts a decision by the tier of its request. Counts nothing without tiers.
    #[inline]
    pub(super) fn count(&self, rules: &Rules, facts: &Facts<'_>, verdict: &Verdict<'_>) {
        let names = rules.policy().tier_names();
        if names.is_empty() {
            return;
        }
        let tier = rules.policy().tier(facts).map_or(names.len(), |tier| tier.index());
        let outcome = Outcome::of_verdict(verdict);
        let place = OUTCOMES.iter().position(|one| *one == outcome).unwrap_or_default();
        let known = self.of_rules.load();
        if known.generation == rules.generation() {
            known.count(tier, place);
        } else {
            self.update(rules).count(tier, place);
        }
    }

    #[cold]
    fn update(&self, rules: &Rules) -> Arc<RulesTiers> {
        let mut by_name = lock(&self.by_name);
        let names = rules.policy().tier_names().iter().map(|name| &**name).chain([OTHER]);
        let counters = names.map(|name| Arc::clone(by_name.entry(name.into()).or_default()));
        let generation = rules.generation();
        let tiers = Arc::new(RulesTiers { generation, counters: counters.collect() });
        self.of_rules.store(Arc::clone(&tiers));
        tiers
    }

    /// Writes the family, if any policy had tiers.
    pub(super) fn write(&self, page: &mut FamilyWriter<'_>) {
        let tiers: Vec<_> =
            lock(&self.by_name).iter().map(|(name, one)| (name.clone(), one.clone())).collect();
        if tiers.is_empty() {
            return;
        }
        let rows = tiers.iter().flat_map(|(name, counters)| {
            OUTCOMES.into_iter().enumerate().map(move |(place, outcome)| {
                let labels = [("tier", &**name), ("outcome", outcome.as_str())];
                (labels, counters.sum(|stripe| &stripe.0[place]))
            })
        });
        let help = "Requests to the gateway by tier and outcome.";
        page.family(FamilyType::Counter, "tollgate_gateway_tier_requests", help, rows);
    }
}

impl RulesTiers {
    #[inline]
    fn count(&self, tier: usize, place: usize) {
        if let Some(counters) = self.counters.get(tier) {
            add(&counters.own().0[place], 1);
        }
    }
}
