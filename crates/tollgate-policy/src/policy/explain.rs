//! Explains for each limit why it applies to a request or not, with the code that selects limits.

use super::select::MatchOutcome;
use super::{Policy, Selection};
use crate::facts::{AttributeId, Facts};
use crate::limit::{Limit, Mode, Selector};
use crate::match_spec::Condition;
use crate::matcher::ConditionVisitor;

/// Whether one limit applies to a request, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LimitApplicability<'p> {
    /// The limit.
    pub limit: &'p Limit,
    /// The limit's index in the file.
    pub index: usize,
    /// Whether the limit applies, and why not.
    pub applicability: Applicability<'p>,
}

/// Whether a limit applies to a request, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applicability<'p> {
    /// The limit applies.
    Applies,
    /// The limit is off.
    Off,
    /// The limit is selected by an Envoy descriptor, not by `match`.
    Addressed,
    /// A condition of `match` is not met. Conditions after it were not tested.
    Unmet {
        /// The attribute.
        attribute: &'p str,
        /// The patterns. One must match.
        patterns: &'p [String],
        /// The request's value as keys contain it; an address is not masked.
        value: Option<String>,
    },
    /// A map under `not` matches the request.
    Excluded {
        /// The conditions of the map, which are all met.
        conditions: &'p [Condition],
    },
    /// The limit is unlimited for the request's tier.
    Unlimited,
    /// Parts of the key are missing, and the limit skips such requests.
    KeyMissing {
        /// The attributes that are missing from the last key that was tried.
        attributes: Vec<&'p str>,
    },
}

/// Records why a matcher does not match.
#[derive(Default)]
struct MismatchVisitor {
    unmet: Option<AttributeId>,
    excluded: Option<usize>,
}

impl ConditionVisitor for MismatchVisitor {
    fn unmet(&mut self, attribute: AttributeId) {
        self.unmet = Some(attribute);
    }

    fn excluded(&mut self, index: usize) {
        self.excluded = Some(index);
    }
}

impl Policy {
    /// Explains for every limit, in file order, whether [`select`](Self::select) selects it, and
    /// why. Limits of shedders and candidates are left out.
    pub fn explain(&self, facts: &Facts<'_>) -> Vec<LimitApplicability<'_>> {
        debug_assert!(facts.belong_to(&self.names), "these facts were made for another policy");
        let shown = (0..self.limits.len()).filter(|at| !self.limits[*at].selector.is_hidden());
        let explain = |index: usize| LimitApplicability {
            limit: &self.limits[index],
            index,
            applicability: self.applicability(index, facts),
        };
        shown.map(explain).collect()
    }

    fn applicability(&self, limit: usize, facts: &Facts<'_>) -> Applicability<'_> {
        match self.limits[limit] {
            Limit { mode: Mode::Off, .. } => return Applicability::Off,
            Limit { selector: Selector::Match, .. } => {}
            _ => return Applicability::Addressed,
        }
        let first = self.applicability_by_reading(limit, facts);
        if first == Applicability::Applies || !facts.has_other_readings() {
            return first;
        }
        // The limits of every reading of a path apply.
        let others = facts.other_readings();
        let mut others = others.map(|other| self.applicability_by_reading(limit, &other));
        others.find(|other| *other == Applicability::Applies).unwrap_or(first)
    }

    fn applicability_by_reading(&self, limit: usize, facts: &Facts<'_>) -> Applicability<'_> {
        let (mut visitor, mut selection) = (MismatchVisitor::default(), Selection::default());
        let of_request = (self.tier(facts), 1, 0);
        match self.consider(limit, facts, false, of_request, &mut selection, &mut visitor) {
            MatchOutcome::Selected => Applicability::Applies,
            MatchOutcome::Unlimited => Applicability::Unlimited,
            MatchOutcome::KeyMissing => self.key_missing(limit, facts),
            MatchOutcome::Unmatched => self.mismatch(limit, facts, &visitor),
        }
    }

    fn key_missing(&self, limit: usize, facts: &Facts<'_>) -> Applicability<'_> {
        let is_present = |name: &str| facts.get(name).is_some();
        let key = self.limits[limit].key_used(is_present).iter().map(|name| &**name);
        Applicability::KeyMissing { attributes: key.filter(|name| !is_present(name)).collect() }
    }

    fn mismatch(
        &self,
        limit: usize,
        facts: &Facts<'_>,
        visitor: &MismatchVisitor,
    ) -> Applicability<'_> {
        let spec = &self.match_specs[limit];
        let mut maps = spec.not.iter().filter(|conditions| !conditions.is_empty());
        if let Some(conditions) = visitor.excluded.and_then(|index| maps.nth(index)) {
            return Applicability::Excluded { conditions };
        }
        let id = visitor.unmet;
        let is_unmet = |condition: &&Condition| self.names.get(&condition.attribute) == id;
        let condition = spec.conditions.iter().find(is_unmet);
        let attribute = condition.map_or("", |condition| &*condition.attribute);
        let patterns = condition.map_or(&[][..], |condition| &*condition.patterns);
        Applicability::Unmet { attribute, patterns, value: id.and_then(|id| facts.match_value(id)) }
    }
}
