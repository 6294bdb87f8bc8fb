//! Filters: selects the decisions that a reader wants.

use super::TailVerdict;
use std::borrow::Cow;
use tollgate::engine::ObservedDecision;
use tollgate_policy::limit::is_named;

/// Every decision: parts per million.
pub const SAMPLE_ALL: u32 = 1_000_000;

/// A reader's filter. All conditions must hold.
#[derive(Clone, Debug)]
pub struct TailFilter {
    /// Only refusals, also by shadow limits.
    pub is_refused_only: bool,
    /// Only this limit, or all limits of an entry with `keys`.
    pub limit: Option<Box<str>>,
    /// Only keys with these values, in canonical form.
    pub attributes: Vec<(Box<str>, Box<str>)>,
    /// The share of decisions to show, in parts per million.
    pub sample_ppm: u32,
}

impl Default for TailFilter {
    fn default() -> Self {
        Self { is_refused_only: false, limit: None, attributes: Vec::new(), sample_ppm: SAMPLE_ALL }
    }
}

impl TailFilter {
    pub(super) fn accepts(&self, decision: &ObservedDecision<'_>, verdict: TailVerdict) -> bool {
        let selected = decision.selected;
        (!self.is_refused_only || verdict != TailVerdict::Admitted)
            && self.limit.as_deref().is_none_or(|name| is_named(&selected.limit.name, name))
            && (self.attributes.is_empty() || {
                let values = selected.limit.key_values(selected.key_index, selected.key);
                let has = |(name, value): &(Box<str>, Box<str>)| {
                    let is_it = |one: &(&str, Cow<'_, str>)| *one.0 == **name && *one.1 == **value;
                    values.iter().any(is_it)
                };
                self.attributes.iter().all(has)
            })
    }

    /// Whether the decision with this number is in the sample. A multiplication spreads the
    /// numbers, so that no pattern of requests falls outside the sample.
    pub(super) fn samples(&self, number: u64) -> bool {
        let spread = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * u64::from(SAMPLE_ALL);
        spread >> 32 < u64::from(self.sample_ppm)
    }
}
