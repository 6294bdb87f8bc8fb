//! The policy as lints see it: each limit with its text in the file, and the limits that cover it.

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
/// requests are compared, so only files with hundreds of those reach this bound. A lint without an
/// answer by then reports nothing.
const COMPARED_MAX: usize = 500;

pub(crate) struct LintView<'a> {
    pub(crate) compiled: &'a Compiled,
    pub(crate) limits: Vec<LintedLimit<'a>>,
    /// All limits that can refuse.
    refusing: CoverIndex<'a>,
    /// All limits that can refuse, grouped by key.
    refusing_by_key: CoverIndex<'a>,
    /// All limits that can refuse, indexed by path.
    refusing_by_path: CoverIndex<'a>,
    #[cfg(test)]
    pub(crate) comparisons: std::cell::Cell<usize>,
}

/// The result of a search among other limits.
pub(crate) enum CoverSearch<T> {
    Found(T),
    /// No limit was found.
    None,
    /// Too many limits to compare.
    GaveUp,
}

/// One limit, with its text in the file.
pub(crate) struct LintedLimit<'a> {
    /// The index in [`LintView::limits`].
    pub(crate) index: usize,
    pub(crate) limit: &'a Limit,
    pub(crate) shape: &'a ComparableMatch,
    pub(crate) entry: &'a At<raw::Limit>,
    /// The attributes of each key, in the order of [`Limit::keys`].
    written_keys: Vec<&'a [At<Text>]>,
    params: WrittenParamsByTier<'a>,
}

/// Converts the matches of all limits. The caller owns them, so that the view can borrow them.
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

    /// Returns one limit for each entry of the file, for lints about fields that all limits of an
    /// entry share.
    pub(crate) fn first_of_each_entry(&self) -> impl Iterator<Item = &LintedLimit<'a>> {
        let entries = &self.compiled.entries;
        let is_first = |index: usize| index == 0 || entries[index - 1] != entries[index];
        self.limits.iter().filter(move |item| is_first(item.index))
    }

    /// Finds another limit that can refuse and applies to every request of `item`, in file order.
    pub(crate) fn find_covering<'v>(
        &'v self,
        item: &LintedLimit<'a>,
        wanted: impl FnMut(&LintedLimit<'a>) -> bool,
    ) -> CoverSearch<&'v LintedLimit<'a>> {
        self.search(self.refusing.covering(0, item.shape), item, wanted)
    }

    /// [`find_covering`](Self::find_covering), only among limits with the same key as `item`.
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

    /// The number of comparisons that all calls of [`guards`](Self::guards) may take together.
    pub(crate) fn guards_compared_max(&self) -> usize {
        COMPARED_MAX * self.limits.len()
    }

    /// Returns the limits that may refuse POST requests for every path that `pattern` matches, in
    /// file order. Returns `None` when no comparisons are left.
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

    /// Whether a front end reads the clients' own requests: the gateway, or forward-auth, which
    /// `http` serves.
    pub(crate) fn reads_requests(&self) -> bool {
        self.listens(Front::Gateway) || self.listens(Front::Http)
    }

    /// Returns the source of an attribute in `identity`.
    pub(crate) fn identity(&self, attribute: &str) -> Option<&'a AttributeSource> {
        let mut sources = self.compiled.settings.identity.iter();
        sources.find(|(name, _)| **name == *attribute).map(|(_, source)| source)
    }
}

impl LintedLimit<'_> {
    /// Whether the limit can refuse: it is enforced, not unlimited, and not free.
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
                // A request that matches no entry costs 1, unless an entry matches all remaining
                // requests.
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

    /// A number that is equal for limits whose keys have the same attributes.
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

    /// Whether the limit is evaluated. A shadow limit is: it is about to be enforced.
    pub(crate) fn is_on(&self) -> bool {
        self.limit.mode != Mode::Off
    }

    /// The name of the entry, without the suffix that `keys` adds.
    pub(crate) fn entry_name(&self) -> &str {
        self.entry.name.as_ref().map_or("", |name| &name.value)
    }

    /// The position of the name.
    pub(crate) fn at(&self) -> Position {
        self.entry.name.as_ref().map_or(self.entry.at, |name| name.at)
    }

    /// The attributes of all keys, each with its position.
    pub(crate) fn key(&self) -> impl Iterator<Item = (&str, Position)> {
        self.keys().flatten()
    }

    /// The attributes of each key, each with its position.
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
