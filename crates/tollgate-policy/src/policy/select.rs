//! Facts to charges: the limits that apply, with their parameters, costs and keys.

use super::key_bytes::{push_absent, push_value};
use super::selection::{EffectiveTier, Selected, SelectedEntry, Selection};
use super::{CompiledLimit, Policy, TierId};
use crate::facts::{AttributeId, Facts, KeyValue};
use crate::limit::{CostRule, Limit, Mode, OnMissing, Selector, first_complete};
use crate::matcher::ConditionVisitor;
use std::net::IpAddr;

impl Policy {
    /// Selects the limits that apply to the facts, in file order, without those that are off or
    /// unlimited.
    ///
    /// [`Policy::facts`] of the same policy must have created the facts.
    #[inline]
    pub fn select(&self, facts: &Facts<'_>, request_cost: u64, selection: &mut Selection) {
        selection.clear();
        self.select_append(facts, request_cost, selection);
    }

    /// Whether [`Policy::facts`] of this policy created the facts.
    fn made(&self, facts: &Facts<'_>) -> bool {
        facts.belong_to(&self.names)
    }

    /// [`select`](Self::select), which keeps the limits that are selected already.
    pub fn select_append(&self, facts: &Facts<'_>, request_cost: u64, selection: &mut Selection) {
        debug_assert!(self.made(facts), "these facts were made for another policy");
        let first = selection.entries.len();
        self.select_reading(facts, request_cost, selection);
        if facts.has_other_readings() {
            self.select_other_readings(facts, request_cost, first, selection);
        }
    }

    /// Merges the limits of the path's other readings into those of the first reading, which start
    /// at `first`.
    #[cold]
    fn select_other_readings(
        &self,
        facts: &Facts<'_>,
        request_cost: u64,
        first: usize,
        selection: &mut Selection,
    ) {
        for other in facts.other_readings() {
            let other_first = selection.entries.len();
            self.select_reading(&other, request_cost, selection);
            selection.merge(first, other_first);
        }
    }

    /// Selects the limits for one reading of the path.
    fn select_reading(&self, facts: &Facts<'_>, request_cost: u64, selection: &mut Selection) {
        let path = self.path.and_then(|path| facts.match_text(path));
        let mut path_matches = std::mem::take(&mut selection.path_matches);
        self.index.find(path, &mut path_matches);
        let (tier, first) = (self.tier(facts), selection.entries.len());
        for path_match in &path_matches {
            let (limit, is_path_checked) = (path_match.limit(), !path_match.must_check_path());
            let of_request = (tier, request_cost, first);
            self.consider(limit, facts, is_path_checked, of_request, selection, &mut ());
        }
        selection.path_matches = path_matches;
    }

    /// Selects one limit if its `match` applies. The tier and the cost are those of the request.
    /// Entries from `first` on were selected by the same facts.
    #[inline]
    pub(super) fn consider(
        &self,
        limit: usize,
        facts: &Facts<'_>,
        is_path_checked: bool,
        (tier, request_cost, first): (Option<TierId>, u64, usize),
        selection: &mut Selection,
        visitor: &mut impl ConditionVisitor,
    ) -> MatchOutcome {
        if facts.unverified().is_some() && self.is_doubtful(limit, facts, is_path_checked, &[]) {
            self.push_unverified(limit, facts, tier, selection)
        } else if self.compiled_limits[limit].matcher.matches_visited(
            facts,
            is_path_checked,
            visitor,
        ) {
            self.push(limit, facts, tier, request_cost, first, selection)
        } else {
            MatchOutcome::Unmatched
        }
    }

    /// Adds a limit of a [descriptor](Selector::Descriptor) to the selection, unless it is off.
    pub fn select_by_index(
        &self,
        limit: usize,
        key: &[u8],
        request_cost: u64,
        selection: &mut Selection,
    ) {
        let Some(definition) = self.limits.get(limit) else { return };
        let Some(params) = self.compiled_limits[limit].base else { return };
        if definition.mode != Mode::Off {
            let start = selection.keys.len();
            selection.keys.extend_from_slice(key);
            let (key, cost, key_index) = (start..selection.keys.len(), request_cost, 0);
            let (missing, unverified, tier) = (false, false, None);
            let entry =
                SelectedEntry { limit, params, cost, tier, key, key_index, missing, unverified };
            selection.entries.push(entry);
        }
    }

    /// Selects one limit without testing `match`. Selects nothing if the limit is off or unlimited,
    /// or if the index is out of range.
    pub fn select_one(
        &self,
        limit: usize,
        facts: &Facts<'_>,
        request_cost: u64,
        selection: &mut Selection,
    ) {
        debug_assert!(self.made(facts), "these facts were made for another policy");
        selection.clear();
        let usual = |limit: &Limit| limit.mode != Mode::Off && limit.selector == Selector::Match;
        if self.limits.get(limit).is_some_and(usual) {
            self.push(limit, facts, self.tier(facts), request_cost, 0, selection);
        }
    }

    /// Selects up to `most` enforced limits that apply to some request with these facts, if
    /// attributes in `open` may have any value. Leaves out limits whose key has an open attribute,
    /// and limits that skip a request without an attribute of their key.
    pub fn select_possible(
        &self,
        facts: &Facts<'_>,
        open: &[&str],
        most: usize,
        selection: &mut Selection,
    ) {
        debug_assert!(self.made(facts), "these facts were made for another policy");
        selection.clear();
        let open: Vec<AttributeId> = open.iter().filter_map(|name| self.names.get(name)).collect();
        let tier = self.tier(facts);
        for (place, (limit, rule)) in self.limits.iter().zip(&self.compiled_limits).enumerate() {
            if selection.entries.len() >= most {
                break;
            }
            if limit.mode == Mode::Enforce
                && limit.selector == Selector::Match
                && !rule.keys_tried(facts).any(|attribute| open.contains(attribute))
            {
                if facts.unverified().is_some() && self.is_doubtful(place, facts, false, &open) {
                    self.push_unverified(place, facts, tier, selection);
                } else if rule.matcher.may_match(facts, &open) {
                    self.push(place, facts, tier, 1, 0, selection);
                }
            }
        }
    }

    /// The selected limits, in file order.
    #[inline]
    pub fn selected<'s>(
        &'s self,
        selection: &'s Selection,
    ) -> impl ExactSizeIterator<Item = Selected<'s>> + Clone {
        selection.entries.iter().map(|entry| Selected {
            limit: &self.limits[entry.limit],
            index: entry.limit,
            params: &self.tier_params[entry.params].params,
            id: self.tier_params[entry.params].id,
            params_index: entry.params,
            tier: entry.tier,
            cost: entry.cost,
            key: &selection.keys[entry.key.clone()],
            key_index: entry.key_index,
            missing: entry.missing,
            unverified: entry.unverified,
        })
    }

    /// The request's tier: as set, else from its attribute. If that is absent or unknown, the
    /// default.
    #[inline]
    pub fn tier(&self, facts: &Facts<'_>) -> Option<TierId> {
        debug_assert!(self.made(facts), "these facts were made for another policy");
        let known = |name: &str| self.tiers.ids.get(name).copied();
        let attribute = || self.tiers.attribute.and_then(|attribute| facts.key_value(attribute));
        let named = match facts.tier().map(KeyValue::Text).or_else(attribute) {
            Some(KeyValue::Text(tier)) => known(tier),
            Some(KeyValue::Address(address)) => known(&address.to_string()),
            None => None,
        };
        named.or(self.tiers.default)
    }

    /// The tier that [`select`](Self::select) applies, and its origin.
    pub fn effective_tier(&self, facts: &Facts<'_>) -> EffectiveTier<'_> {
        let attribute = self.tiers.attribute.and_then(|attribute| facts.key_value(attribute));
        let named = match (facts.tier(), attribute) {
            (Some(tier), _) => Some(tier.to_owned()),
            (None, Some(KeyValue::Text(tier))) => Some(tier.to_owned()),
            (None, Some(KeyValue::Address(address))) => Some(address.to_string()),
            (None, None) => None,
        };
        let is_known = named.as_deref().is_some_and(|name| self.tiers.ids.contains_key(name));
        let id = self.tier(facts);
        let name = id.and_then(|id| self.tiers.names.get(id.index()));
        EffectiveTier { name: name.map(|name| &**name), named, is_known }
    }

    /// The indices of the limits that are unlimited for this caller. Limits that are off or lack a
    /// part of their key are left out.
    pub fn unlimited(&self, facts: &Facts<'_>) -> impl Iterator<Item = usize> {
        let (tier, mut key) = (self.tier(facts), Vec::new());
        let is_unlimited = move |place: &usize| {
            let (limit, rule) = (&self.limits[*place], &self.compiled_limits[*place]);
            key.clear();
            limit.mode != Mode::Off
                && limit.selector == Selector::Match
                && rule.params_index(tier).is_none()
                && push_key(rule.key(rule.key_index(facts)), facts, limit.on_missing, &mut key)
        };
        (0..self.limits.len()).filter(is_unlimited)
    }

    /// Selects a limit. Entries from `first` on were selected by the same facts.
    // Always inlined: a call for each limit costs a fifth of the selection.
    #[inline(always)]
    fn push(
        &self,
        limit: usize,
        facts: &Facts<'_>,
        tier: Option<TierId>,
        request_cost: u64,
        first: usize,
        selection: &mut Selection,
    ) -> MatchOutcome {
        let (definition, rule) = (&self.limits[limit], &self.compiled_limits[limit]);
        let Some(params) = rule.params_index(tier) else { return MatchOutcome::Unlimited };
        let Selection { entries, keys, .. } = selection;
        let has_same_key = |last: &&SelectedEntry| {
            !last.unverified && self.compiled_limits[last.limit].key_group == rule.key_group
        };
        let (key, key_index, missing) = match entries[first..].last().filter(has_same_key) {
            Some(last) => (last.key.clone(), last.key_index, last.missing),
            None => {
                let start = keys.len();
                let place = rule.key_index(facts);
                let is_complete = push_key(rule.key(place), facts, definition.on_missing, keys);
                if !is_complete {
                    keys.truncate(start);
                }
                (start..keys.len(), place, !is_complete)
            }
        };
        if missing && definition.on_missing == OnMissing::Skip {
            return MatchOutcome::KeyMissing;
        }
        let cost = cost(definition, rule, facts).saturating_mul(request_cost);
        let (params, unverified) = (params + key_index, false);
        let entry =
            SelectedEntry { limit, params, cost, tier, key, key_index, missing, unverified };
        entries.push(entry);
        MatchOutcome::Selected
    }
}

/// The result of considering one limit for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchOutcome {
    Selected,
    /// A condition is not met, or `not` excludes the request.
    Unmatched,
    /// The request's tier is unlimited.
    Unlimited,
    /// A part of the key is missing, and the limit skips such requests.
    KeyMissing,
}

impl CompiledLimit {
    /// The index of the parameters for a tier; a limit without that tier uses its base parameters.
    pub(super) fn params_index(&self, tier: Option<TierId>) -> Option<usize> {
        let of_tier = |tier| self.tiers.iter().find(|(id, _)| *id == tier);
        tier.and_then(of_tier).map_or(self.base, |(_, params)| *params)
    }

    /// The index of the key that a request uses: the first complete key, or the last if none is
    /// complete.
    #[inline]
    fn key_index(&self, facts: &Facts<'_>) -> usize {
        if self.fallback_keys.is_empty() {
            return 0;
        }
        let keys = (0..self.fallback_keys.len() + 1).map(|place| self.key(place));
        first_complete(keys, |attribute| facts.key_value(*attribute).is_some())
    }

    /// The attributes of the key that a request uses, and of the keys tried before it.
    fn keys_tried(&self, facts: &Facts<'_>) -> impl Iterator<Item = &AttributeId> {
        (0..=self.key_index(facts)).flat_map(|place| self.key(place))
    }

    #[inline]
    pub(super) fn key(&self, place: usize) -> &[AttributeId] {
        let fallback = place.checked_sub(1).and_then(|place| self.fallback_keys.get(place));
        fallback.unwrap_or(&self.key)
    }
}

#[inline(always)]
fn cost(limit: &Limit, rule: &CompiledLimit, facts: &Facts<'_>) -> u64 {
    match &limit.cost {
        CostRule::Fixed(cost) => *cost,
        CostRule::Estimate { estimate, .. } => *estimate,
        CostRule::ByMatch(_) => {
            let first = rule.weights.iter().find(|weight| weight.matcher.matches(facts, false));
            first.map_or(1, |weight| weight.units)
        }
        CostRule::Attribute { default, max, .. } => rule
            .cost_attribute
            .and_then(|attribute| facts.key_value(attribute))
            .and_then(|value| match value {
                KeyValue::Text(text) => parse_cost(text),
                KeyValue::Address(_) => None,
            })
            .map_or(*default, |cost| cost.min(*max)),
    }
}

/// Parses digits. A number that is too large becomes the maximum, which is above any `max`.
fn parse_cost(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Appends the values of the key's attributes. Returns false if one is missing and `on_missing` is
/// not `share`.
#[inline]
fn push_key(
    key: &[AttributeId],
    facts: &Facts<'_>,
    on_missing: OnMissing,
    out: &mut Vec<u8>,
) -> bool {
    for attribute in key {
        match facts.key_value(*attribute) {
            Some(KeyValue::Text(text)) => push_value(out, text.as_bytes()),
            Some(KeyValue::Address(IpAddr::V4(v4))) => push_value(out, &v4.octets()),
            Some(KeyValue::Address(IpAddr::V6(v6))) => push_value(out, &v6.octets()),
            None if on_missing == OnMissing::Share => push_absent(out),
            None => return false,
        }
    }
    true
}
