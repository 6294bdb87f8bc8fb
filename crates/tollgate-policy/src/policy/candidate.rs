//! Candidates of selected limits: counted along with them, never enforced.

use super::selection::{SelectedEntry, Selection};
use super::{CompiledLimit, Policy};
use crate::limit::{Limit, Mode, Selector};

impl Policy {
    /// Whether any limit has a candidate.
    #[inline]
    pub fn has_candidates(&self) -> bool {
        self.has_candidates
    }

    /// Selects the candidates of selected limits for whose index `is_charged` returns true.
    /// Candidates come after all limits. A candidate has the key and the cost of its limit.
    pub fn select_candidates(&self, selection: &mut Selection, is_charged: impl Fn(usize) -> bool) {
        for place in 0..selection.entries.len() {
            let base = &selection.entries[place];
            if !is_charged(place) {
                continue;
            }
            let Some(limit) = self.compiled_limits[base.limit].candidate else { continue };
            let params = self.compiled_limits[limit].params_index(base.tier);
            let (Some(params), false) = (params, base.missing) else { continue };
            if self.limits[limit].mode == Mode::Off {
                continue;
            }
            let entry = SelectedEntry {
                limit,
                params: params + base.key_index,
                cost: base.cost,
                tier: base.tier,
                key: base.key.clone(),
                key_index: base.key_index,
                missing: false,
                unverified: false,
            };
            selection.entries.push(entry);
        }
    }
}

/// Links limits to their candidates, which come later in the list. Returns whether there are any.
pub(super) fn link(compiled: &mut [CompiledLimit], limits: &[Limit]) -> bool {
    let mut has_candidates = false;
    for (place, limit) in limits.iter().enumerate() {
        if let Selector::Candidate(base) = limit.selector
            && let Some(base) = compiled.get_mut(base)
        {
            base.candidate = Some(place);
            has_candidates = true;
        }
    }
    has_candidates
}
