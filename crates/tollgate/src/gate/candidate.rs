//! Candidates in a decision: charged beside their limits, compared with them, and never shown.

use super::{DecisionRequest, Gate};
use crate::engine::CandidateCounts;
use crate::rules::CandidateOutcome;
use std::ops::Range;
use tollgate_core::Intent;
use tollgate_policy::limit::Selector;
use tollgate_store::{Answer, LeaseStore, Mode, Store};

impl DecisionRequest<'_, '_> {
    /// Prepares the candidates, which are the last limits: no counter of limits counts them, and
    /// no row shows them.
    pub(crate) fn prepare_candidates(&mut self) {
        self.candidates = 0;
        for at in (0..self.limits.len()).rev() {
            if !matches!(self.limits[at].selected.limit.selector, Selector::Candidate(_)) {
                break;
            }
            self.candidates += 1;
            self.limits[at].counts = false;
            let Some(base) = self.base_of(at) else { continue };
            let enforced = self.charges[base].mode == Mode::Enforce;
            if enforced {
                self.charges[base].mode = Mode::Replaced;
            }
            self.charges[at].mode = Mode::Candidate { enforced };
        }
    }

    /// The index of the limit whose candidate is at this index.
    fn base_of(&self, candidate: usize) -> Option<usize> {
        let one = &self.limits[candidate].selected;
        let Selector::Candidate(base) = one.limit.selector else { return None };
        let known = self.limits[..candidate].iter();
        known.map(|limit| &limit.selected).position(|it| it.index == base && it.key == one.key)
    }

    /// The limits of a request that have rows.
    #[inline]
    pub(super) fn shown(&self, limits: Range<usize>) -> Range<usize> {
        limits.start..limits.end - self.candidates
    }
}

impl<S: Store> Gate<S> {
    /// Compares candidates with their limits, and counts the outcomes.
    pub(super) fn count_candidates(&self, request: &DecisionRequest<'_, '_>, answers: &[Answer]) {
        let end = request.limits.len();
        for at in end - request.candidates..end {
            let limit = &request.limits[at];
            let Some(base) = request.base_of(at).filter(|_| limit.intent == Intent::Take) else {
                continue;
            };
            let counters = request.rules.candidate_counters(request.limits[base].selected.index);
            if let (Some(counters), Some(own), Some(other)) =
                (counters, answers.get(base), answers.get(at))
            {
                let (admits, candidate_admits) = (own.outcome.admitted, other.outcome.admitted);
                let outcome = CandidateOutcome::of(admits, candidate_admits, own.blocked);
                counters.count(outcome, limit.selected.key);
            }
        }
    }
}

impl<S: LeaseStore> Gate<S> {
    /// What candidates would have done, by the name of the limit. A limit that loses its candidate
    /// keeps its counts.
    pub fn candidate_counts(&self) -> Vec<(Box<str>, CandidateCounts)> {
        let builder = self.builder();
        let all = builder.candidates.iter();
        all.map(|(name, counters)| (name.clone(), counters.read())).collect()
    }
}
