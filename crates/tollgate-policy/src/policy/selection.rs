//! The limits that one request selected.

use crate::limit::Limit;
use crate::matcher::Candidate;
use std::ops::Range;
use tollgate_core::LimitParams;

/// What was selected for one request; reused for the next, so that nothing is allocated in the long
/// run.
#[derive(Debug, Default)]
pub struct Selection {
    pub(super) candidates: Vec<Candidate>,
    pub(super) entries: Vec<SelectedEntry>,
    pub(super) keys: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct SelectedEntry {
    pub(super) limit: usize,
    pub(super) params: usize,
    pub(super) cost: u64,
    pub(super) key: Range<usize>,
    /// Which of the limit's keys it is.
    pub(super) key_index: usize,
    pub(super) missing: bool,
    pub(super) unverified: bool,
}

/// One limit that applies to the request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Selected<'s> {
    /// The limit.
    pub limit: &'s Limit,
    /// Its place in the file.
    pub index: usize,
    /// The numbers of the request's tier.
    pub params: &'s LimitParams,
    /// Their place in [`Policy::tier_params`].
    pub params_index: usize,
    /// Whose state it is: the limit's, apart for each period that its tiers have.
    pub id: u64,
    /// The limit's cost times the request's.
    pub cost: u64,
    /// The key's values; no two tuples of values have the same bytes. Which attributes they are of
    /// is part of the limit's identity.
    pub key: &'s [u8],
    /// Which of the limit's [keys](Limit::keys) it is; 0 without `first_of`.
    pub key_index: usize,
    /// A key attribute is missing and the limit says `on_missing: refuse`: no wait can help, and
    /// `key` is empty.
    pub missing: bool,
    /// A token that the limit reads did not verify, and the limit says `on_invalid: refuse`. Then
    /// `missing` is set too.
    pub unverified: bool,
}

/// The tier of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectiveTier<'p> {
    /// Its name; `None` where the request has none and the policy no default.
    pub name: Option<&'p str>,
    /// The tier that an attribute, a map or Redis named.
    pub named: Option<String>,
    /// Whether a limit has the tier that was named; else `name` is the default.
    pub is_known: bool,
}

impl<'s> Selected<'s> {
    /// A limit that is in no file: it came with the request.
    pub const fn inline(
        limit: &'s Limit,
        params: &'s LimitParams,
        id: u64,
        key: &'s [u8],
        cost: u64,
    ) -> Self {
        let (index, params_index, key_index) = (usize::MAX, usize::MAX, 0);
        let (missing, unverified) = (false, false);
        Self { limit, index, params, params_index, id, cost, key, key_index, missing, unverified }
    }
}

impl Selection {
    /// How many limits apply.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none applies.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Leaves out the limits for whose place in the file `keep` answers `false`.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.entries.retain(|entry| keep(entry.limit));
    }

    /// Merges the limits of another reading of the request, from `other` on, into those from
    /// `first` on. Keeps the file's order, and each limit once for each key, with the higher cost.
    pub(super) fn merge(&mut self, first: usize, other: usize) {
        let added: Vec<SelectedEntry> = self.entries.drain(other..).collect();
        for entry in added {
            let key = &self.keys[entry.key.clone()];
            let is_same = |known: &&mut SelectedEntry| {
                (known.limit, known.key_index) == (entry.limit, entry.key_index)
                    && known.missing == entry.missing
                    && self.keys[known.key.clone()] == *key
            };
            match self.entries[first..].iter_mut().find(is_same) {
                Some(known) => known.cost = known.cost.max(entry.cost),
                None => self.entries.push(entry),
            }
        }
        self.entries[first..].sort_by_key(|entry| entry.limit);
    }

    /// Forgets what was selected.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
    }
}
