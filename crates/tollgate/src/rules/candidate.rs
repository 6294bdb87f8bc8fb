//! Counters of candidates: how often a candidate decides differently from its limit, and for how
//! many keys.

use super::counters::Counters;
use crate::sync::lock;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

/// Limit of distinct keys per limit; further keys are not counted.
const KEYS_MAX: usize = 10_000;

/// Decisions of a candidate on the requests that its limit decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CandidateCounts {
    /// Limit and candidate agreed, or a block decided.
    pub same: u64,
    /// The limit admitted, and the candidate would have refused.
    pub would_refuse: u64,
    /// The limit refused, and the candidate would have admitted.
    pub would_admit: u64,
    /// Keys with a request that the candidate decided differently, up to ten thousand.
    pub keys: u64,
}

/// The outcome of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateOutcome {
    Same,
    WouldRefuse,
    WouldAdmit,
}

/// The counters of one limit's candidate. They belong to the limit's name and survive a reload.
#[derive(Debug, Default)]
pub(crate) struct CandidateCounters {
    outcomes: Counters,
    /// Hashes of the keys that were decided differently.
    keys: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl CandidateOutcome {
    /// Compares the answers of a limit and of its candidate.
    pub(crate) const fn of(limit_admits: bool, candidate_admits: bool, is_blocked: bool) -> Self {
        match (limit_admits, candidate_admits) {
            (true, false) => Self::WouldRefuse,
            (false, true) if !is_blocked => Self::WouldAdmit,
            _ => Self::Same,
        }
    }
}

impl CandidateCounters {
    pub(crate) fn count(&self, outcome: CandidateOutcome, key: &[u8]) {
        self.outcomes.add_one(outcome as usize);
        if outcome != CandidateOutcome::Same {
            let mut keys = lock(&self.keys);
            if keys.len() < KEYS_MAX {
                keys.insert(self.hasher.hash_one(key));
            }
        }
    }

    pub(crate) fn read(&self) -> CandidateCounts {
        let [same, would_refuse, would_admit, ..] = self.outcomes.sums();
        let keys = lock(&self.keys).len() as u64;
        CandidateCounts { same, would_refuse, would_admit, keys }
    }
}
