//! Candidates in a decision: charged beside their limits, compared with them, and never shown.

use super::{DecisionRequest, Gate, RequestedLimit};
use crate::engine::CandidateCounts;
use crate::rules::CandidateOutcome;
use std::ops::Range;
use tollgate_core::Intent;
use tollgate_policy::limit::Selector;
use tollgate_store::{Answer, ChargeMode, LeaseStore, Store};

impl DecisionRequest<'_, '_> {
    /// Prepares the candidates, which are the last limits from `first` on: no counter of limits
    /// counts them, and no row shows them.
    pub(crate) fn prepare_candidates(&mut self, first: usize) {
        for at in (first..self.limits.len()).rev() {
            if !self.limits[at].selected.limit.selector.is_candidate() {
                break;
            }
            self.candidates += 1;
            self.limits[at].counts = false;
            let Some(base) = self.base_of(first, at) else { continue };
            let enforced = self.charges[base].mode == ChargeMode::Enforce;
            if enforced {
                self.charges[base].mode = ChargeMode::Replaced;
            }
            self.charges[at].mode = ChargeMode::Candidate { enforced };
        }
    }

    /// The index of the limit whose candidate is at this index, in the request that begins at
    /// `first`.
    fn base_of(&self, first: usize, candidate: usize) -> Option<usize> {
        let one = &self.limits[candidate].selected;
        let Selector::Candidate(base) = one.limit.selector else { return None };
        let is_base =
            |it: &RequestedLimit<'_>| it.selected.index == base && it.selected.key == one.key;
        let place = self.limits[first..candidate].iter().position(is_base)?;
        Some(first + place)
    }
}

impl<S: Store> Gate<S> {
    /// Compares the candidates of one request with their limits, and counts the outcomes.
    pub(super) fn count_candidates(
        &self,
        request: &DecisionRequest<'_, '_>,
        limits: Range<usize>,
        answers: &[Answer],
    ) {
        let first = limits.start;
        for at in request.shown(limits.clone()).end..limits.end {
            let limit = &request.limits[at];
            let base = request.base_of(first, at).filter(|_| limit.intent == Intent::Take);
            let Some(base) = base else { continue };
            let counters = request.rules.candidate_counters(request.limits[base].selected.index);
            let decided = |at: usize| answers.get(at - first).filter(|row| row.failure().is_none());
            if let (Some(counters), Some(own), Some(other)) = (counters, decided(base), decided(at))
            {
                let (admits, candidate_admits) = (own.outcome.admitted, other.outcome.admitted);
                let outcome = CandidateOutcome::of(admits, candidate_admits, own.blocked);
                counters.count(outcome, limit.selected.key);
            }
        }
    }
}

impl<S: LeaseStore> Gate<S> {
    /// Decision counts of candidates, by the name of the limit. A limit that loses its candidate
    /// keeps its counts.
    pub fn candidate_counts(&self) -> Vec<(Box<str>, CandidateCounts)> {
        let builder = self.builder();
        let all = builder.candidates.iter();
        all.map(|(name, counters)| (name.clone(), counters.read())).collect()
    }
}
