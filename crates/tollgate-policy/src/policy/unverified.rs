//! Limits that refuse because the request's token is present but does not verify.

use super::select::MatchOutcome;
use super::selection::{SelectedEntry, Selection};
use crate::facts::{AttributeId, Facts};
use crate::limit::OnInvalid;
use crate::matcher::Matcher;
use crate::policy::{CompiledLimit, Policy, TierId};

impl Policy {
    /// Whether the limit refuses because its key, cost, tiers or conditions read an unverified
    /// attribute. Conditions on such an attribute are assumed to hold. Attributes in `open` may
    /// have any value.
    #[cold]
    pub(super) fn is_doubtful(
        &self,
        limit: usize,
        facts: &Facts<'_>,
        is_path_checked: bool,
        open: &[AttributeId],
    ) -> bool {
        let rule = &self.compiled_limits[limit];
        let reads_tier = !rule.tiers.is_empty() && self.is_tier_doubtful(facts);
        self.limits[limit].on_invalid == OnInvalid::Refuse
            && (reads_tier || rule.reads_unverified(facts))
            && rule.matcher.could_match(facts, is_path_checked, open)
    }

    fn is_tier_doubtful(&self, facts: &Facts<'_>) -> bool {
        self.tiers.inputs.iter().any(|id| facts.is_unverified(*id))
    }

    /// Selects a limit that refuses because the token is not verified. A limit that is unlimited
    /// for the request's tier does not apply.
    #[cold]
    pub(super) fn push_unverified(
        &self,
        limit: usize,
        facts: &Facts<'_>,
        tier: Option<TierId>,
        selection: &mut Selection,
    ) -> MatchOutcome {
        let rule = &self.compiled_limits[limit];
        let any = || rule.tiers.iter().find_map(|(_, params)| *params);
        let params = if self.is_tier_doubtful(facts) {
            rule.base.or_else(any)
        } else {
            rule.params_index(tier)
        };
        let Some(params) = params else { return MatchOutcome::Unlimited };
        let end = selection.keys.len();
        selection.entries.push(SelectedEntry {
            limit,
            params,
            cost: 1,
            tier,
            key: end..end,
            key_index: 0,
            missing: true,
            unverified: true,
        });
        MatchOutcome::Selected
    }
}

impl CompiledLimit {
    fn reads_unverified(&self, facts: &Facts<'_>) -> bool {
        let is_unverified = |id: AttributeId| facts.is_unverified(id);
        let has_doubtful_condition = |matcher: &Matcher| matcher.attributes().any(is_unverified);
        self.has_unverified_key(facts)
            || self.cost_attribute.is_some_and(is_unverified)
            || has_doubtful_condition(&self.matcher)
            || self.weights.iter().any(|weight| {
                has_doubtful_condition(&weight.matcher)
                    && weight.matcher.could_match(facts, false, &[])
            })
    }

    /// Whether a key that the request could use has an unverified attribute. Keys after the first
    /// complete one are ignored.
    fn has_unverified_key(&self, facts: &Facts<'_>) -> bool {
        for place in 0..=self.fallback_keys.len() {
            let key = self.key(place);
            if key.iter().any(|id| facts.is_unverified(*id)) {
                return true;
            }
            if key.iter().all(|id| facts.key_value(*id).is_some()) {
                return false;
            }
        }
        false
    }
}
