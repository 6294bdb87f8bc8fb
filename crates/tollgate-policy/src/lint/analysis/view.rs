//! The file as lints look at it: each limit with what was written for it, and which others cover
//! it.

use super::cover::{ComparableMatch, Pattern};
use super::cover_index::{Candidates, CoverIndex, IndexedBy};
use super::written_params::WrittenParamsByTier;
use crate::Compiled;
use crate::diagnostic::Position;
use crate::limit::{CostRule, Limit, Mode};
use crate::match_spec::MatchSpec;
use crate::raw::{self, At, Text};
use crate::settings::{AttributeSource, Front};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The most other limits that one limit is compared with. Only limits that apply to the same
/// requests are compared, so only files with hundreds of those reach this bound. A lint that has no
/// answer by then is quiet.
const COMPARED_MAX: usize = 500;

pub(crate) struct LintView<'a> {
    pub(crate) compiled: &'a Compiled,
    pub(crate) limits: Vec<LintedLimit<'a>>,
    /// All limits that can refuse.
    refusing: CoverIndex<'a>,
    /// The same, those with one key as one group.
    refusing_by_key: CoverIndex<'a>,
    /// The same, by the paths that they match.
    refusing_by_path: CoverIndex<'a>,
    #[cfg(test)]
    pub(crate) comparisons: std::cell::Cell<usize>,
}

/// The result of a search among other limits.
pub(crate) enum CoverSearch<T> {
    Found(T),
    /// There is none.
    None,
    /// There are too many to look at.
    GaveUp,
}

/// One limit and what was written for it.
pub(crate) struct LintedLimit<'a> {
    /// Its place in [`View::limits`].
    pub(crate) index: usize,
    pub(crate) limit: &'a Limit,
    pub(crate) shape: &'a ComparableMatch,
    pub(crate) entry: &'a At<raw::Limit>,
    /// The attributes of each of its keys, in the order of [`Limit::keys`].
    written_keys: Vec<&'a [At<Text>]>,
    params: WrittenParamsByTier<'a>,
}

/// The shapes live outside the view, so that its parts can refer to them.
pub(crate) fn shapes(compiled: &Compiled) -> Vec<ComparableMatch> {
    compiled.limits.iter().map(|(_, spec)| ComparableMatch::new(spec)).collect()
}

impl<'a> LintView<'a> {
    pub(crate) fn new(compiled: &'a Compiled, shapes: &'a [ComparableMatch]) -> Self {
        let entries = compiled.file.limits.as_ref().map(|limits| limits.as_slice());
        let entries = entries.unwrap_or_default();
        let mut limits: Vec<LintedLimit<'a>> = Vec::with_capacity(compiled.limits.len());
        let mut nth = 0;
        let parts = compiled.limits.iter().zip(&compiled.entries).zip(shapes);
        for (index, (((limit, _), &of), shape)) in parts.enumerate() {
            let Some(entry) = entries.get(of) else { continue };
            let is_first = index == 0 || compiled.entries[index - 1] != of;
            nth = if is_first { 0 } else { nth + 1 };
            let (written_keys, figures) =
                (written_keys(entry, nth), WrittenParamsByTier::new(entry));
            limits.push(LintedLimit { index, limit, shape, entry, written_keys, params: figures });
        }
        let refusing = || limits.iter().enumerate().filter(|(_, item)| item.refuses());
        let all = refusing().map(|(place, item)| (place, 0, item.shape));
        let by_key = refusing().map(|(place, item)| (place, item.key_group(), item.shape));
        Self {
            compiled,
            refusing: CoverIndex::new(all.clone(), IndexedBy::Rarest),
            refusing_by_key: CoverIndex::new(by_key, IndexedBy::Rarest),
            refusing_by_path: CoverIndex::new(all, IndexedBy::Path),
            limits,
            #[cfg(test)]
            comparisons: std::cell::Cell::new(0),
        }
    }

    /// One limit for each entry of the file, for lints that look at what all limits of an entry
    /// share.
    pub(crate) fn first_of_each_entry(&self) -> impl Iterator<Item = &LintedLimit<'a>> {
        let entries = &self.compiled.entries;
        let is_first = |index: usize| index == 0 || entries[index - 1] != entries[index];
        self.limits.iter().filter(move |item| is_first(item.index))
    }

    /// Searches the other limits that apply to every request to which `item` applies and that can
    /// refuse it, in the order of the file.
    pub(crate) fn find_covering<'v>(
        &'v self,
        item: &LintedLimit<'a>,
        wanted: impl FnMut(&LintedLimit<'a>) -> bool,
    ) -> CoverSearch<&'v LintedLimit<'a>> {
        self.search(self.refusing.covering(0, item.shape), item, wanted)
    }

    /// The same among limits with the key of `item`.
    pub(crate) fn find_covering_with_same_key<'v>(
        &'v self,
        item: &LintedLimit<'a>,
        wanted: impl FnMut(&LintedLimit<'a>) -> bool,
    ) -> CoverSearch<&'v LintedLimit<'a>> {
        let candidates = self.refusing_by_key.covering(item.key_group(), item.shape);
        self.search(candidates, item, wanted)
    }

    fn search<'v>(
        &'v self,
        candidates: Candidates<'_>,
        item: &LintedLimit<'a>,
        mut wanted: impl FnMut(&LintedLimit<'a>) -> bool,
    ) -> CoverSearch<&'v LintedLimit<'a>> {
        let others = candidates.filter_map(|place| self.limits.get(place));
        let others = others.filter(|other| other.index != item.index);
        for (compared, other) in others.enumerate() {
            if compared == COMPARED_MAX {
                return CoverSearch::GaveUp;
            }
            self.count_comparison();
            if other.shape.covers(item.shape) && wanted(other) {
                return CoverSearch::Found(other);
            }
        }
        CoverSearch::None
    }

    /// How many comparisons all calls of [`guards`](Self::guards) may take together.
    pub(crate) fn guards_compared_max(&self) -> usize {
        COMPARED_MAX * self.limits.len()
    }

    /// The limits that may refuse POST requests for every path that `pattern` matches, in file
    /// order; `None` when no comparisons are left.
    pub(crate) fn guards<'v>(
        &'v self,
        pattern: &Pattern,
        left: &mut usize,
    ) -> Option<Vec<&'v LintedLimit<'a>>> {
        let mut guards = Vec::new();
        let others = self.refusing_by_path.covering_path(0, pattern);
        for other in others.filter_map(|place| self.limits.get(place)) {
            *left = left.checked_sub(1)?;
            self.count_comparison();
            if other.shape.may_cover_posts(pattern) {
                guards.push(other);
            }
        }
        Some(guards)
    }

    fn count_comparison(&self) {
        #[cfg(test)]
        self.comparisons.set(self.comparisons.get() + 1);
    }

    pub(crate) fn listens(&self, front: Front) -> bool {
        self.compiled.settings.listeners.iter().any(|listener| listener.front == front)
    }

    /// Whether clients' own requests are read: by the gateway, or by forward-auth, which `http`
    /// serves.
    pub(crate) fn reads_requests(&self) -> bool {
        self.listens(Front::Gateway) || self.listens(Front::Http)
    }

    /// Where `identity` takes the attribute from.
    pub(crate) fn identity(&self, attribute: &str) -> Option<&'a AttributeSource> {
        let mut sources = self.compiled.settings.identity.iter();
        sources.find(|(name, _)| **name == *attribute).map(|(_, source)| source)
    }
}

impl LintedLimit<'_> {
    /// Whether it can refuse anything: enforced, not unlimited, not free.
    pub(crate) fn refuses(&self) -> bool {
        let limits = self.limit.params.is_some()
            || self.limit.tiers.iter().any(|(_, params)| params.is_some());
        self.limit.mode == Mode::Enforce && limits && self.costs().1 > 0
    }

    /// The least and the most units that a request may cost.
    pub(crate) fn costs(&self) -> (u64, u64) {
        match &self.limit.cost {
            CostRule::Fixed(cost) => (*cost, *cost),
            CostRule::Attribute { max, .. } => (0, *max),
            CostRule::ByMatch(weighted) => {
                // Without a match a request costs 1, unless an entry takes all that is left.
                let takes_all =
                    |spec: &MatchSpec| spec.conditions.is_empty() && spec.not.is_empty();
                let last = weighted.iter().position(|entry| takes_all(&entry.match_spec));
                let tried = &weighted[..last.map_or(weighted.len(), |last| last + 1)];
                let units = tried.iter().map(|entry| entry.units);
                let all = units.chain(last.is_none().then_some(1));
                (all.clone().min().unwrap_or(1), all.max().unwrap_or(1))
            }
            CostRule::Estimate { .. } => (0, u64::MAX),
        }
    }

    /// The same number for limits with the same attributes in their keys.
    fn key_group(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for key in self.limit.keys() {
            let mut key: Vec<&str> = key.iter().map(|attribute| &**attribute).collect();
            key.sort_unstable();
            key.hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) fn params(&self) -> &WrittenParamsByTier<'_> {
        &self.params
    }

    /// Whether it is evaluated at all; a limit in shadow is one that is about to be enforced.
    pub(crate) fn is_on(&self) -> bool {
        self.limit.mode != Mode::Off
    }

    /// The name as written, without the key that `keys` adds.
    pub(crate) fn entry_name(&self) -> &str {
        self.entry.name.as_ref().map_or("", |name| &name.value)
    }

    /// Where its name is.
    pub(crate) fn at(&self) -> Position {
        self.entry.name.as_ref().map_or(self.entry.at, |name| name.at)
    }

    /// The attributes of all its keys, each with its place.
    pub(crate) fn key(&self) -> impl Iterator<Item = (&str, Position)> {
        self.keys().flatten()
    }

    /// The attributes of each of its keys, each with its place.
    pub(crate) fn keys(&self) -> impl Iterator<Item = impl Iterator<Item = (&str, Position)>> {
        self.limit.keys().zip(&self.written_keys).map(|(key, written)| {
            let places = written.iter().map(|written| written.at);
            key.iter().map(|attribute| &**attribute).zip(places)
        })
    }
}

fn written_keys(entry: &raw::Limit, nth: usize) -> Vec<&[At<Text>]> {
    match (&entry.keys, entry.key.as_ref().map(|key| &key.value)) {
        (Some(keys), _) => keys.get(nth).map(|key| key.0.0.as_slice()).into_iter().collect(),
        (None, Some(raw::KeyChoice::Attributes(key))) => vec![&key.0],
        (None, Some(raw::KeyChoice::FirstOf(form))) => {
            let keys = form.first_of.iter().flat_map(|keys| keys.iter());
            keys.map(|key| key.0.as_slice()).collect()
        }
        (None, None) => vec![&[]],
    }
}
