//! The limits selected for one request.

use super::TierId;
use crate::limit::Limit;
use crate::matcher::PathMatch;
use std::ops::Range;
use tollgate_core::LimitParams;

/// The limits selected for one request. Reusing it for the next request avoids allocation.
#[derive(Debug, Default)]
pub struct Selection {
    pub(super) path_matches: Vec<PathMatch>,
    pub(super) entries: Vec<SelectedEntry>,
    pub(super) keys: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct SelectedEntry {
    pub(super) limit: usize,
    pub(super) params: usize,
    pub(super) cost: u64,
    pub(super) tier: Option<TierId>,
    pub(super) key: Range<usize>,
    /// The index of the key among those of the limit.
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
    /// The limit's index in the file.
    pub index: usize,
    /// The parameters of the request's tier.
    pub params: &'s LimitParams,
    /// The index of `params` in [`Policy::tier_params`](super::Policy::tier_params).
    pub params_index: usize,
    /// The request's tier, whether or not the limit has parameters for it.
    pub tier: Option<TierId>,
    /// The state id: one per limit, key and period.
    pub id: u64,
    /// The limit's cost times the request's cost.
    pub cost: u64,
    /// The key's values, encoded so that different tuples have different bytes.
    pub key: &'s [u8],
    /// The index of the key in [`Limit::keys`]; 0 without `first_of`.
    pub key_index: usize,
    /// A key attribute is missing and the limit says `on_missing: refuse`. `key` is empty then.
    pub missing: bool,
    /// The token did not verify and the limit says `on_invalid: refuse`. `missing` is set too.
    pub unverified: bool,
}

/// The tier of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectiveTier<'p> {
    /// The name; `None` if the request has no known tier and the policy no default.
    pub name: Option<&'p str>,
    /// The tier that an attribute, a map or Redis named.
    pub named: Option<String>,
    /// Whether a limit has the named tier; if not, `name` is the default.
    pub is_known: bool,
}

impl<'s> Selected<'s> {
    /// Creates the selection of an inline limit, which came with the request.
    pub const fn inline(
        limit: &'s Limit,
        params: &'s LimitParams,
        id: u64,
        key: &'s [u8],
        cost: u64,
    ) -> Self {
        let (index, params_index, key_index) = (usize::MAX, usize::MAX, 0);
        Self {
            limit,
            index,
            params,
            params_index,
            tier: None,
            id,
            cost,
            key,
            key_index,
            missing: false,
            unverified: false,
        }
    }
}

impl Selection {
    /// The number of limits.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no limit is selected.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps the limits for whose index in the file `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.entries.retain(|entry| keep(entry.limit));
    }

    /// Merges the entries from `other` on, which belong to another reading of the path, into those
    /// from `first` on. Keeps file order, and each limit once for each key, with the higher cost.
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

    /// Removes all limits.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
    }
}
