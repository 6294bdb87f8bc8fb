//! Finds the few matches that may cover another match. Comparing every pair would take quadratic
//! time.
//!
//! If one match covers another, one of its patterns covers the other's first pattern of the same
//! attribute. So each match is indexed by the literal prefixes of its patterns, for the condition
//! that the fewest other matches share. A search looks up the prefixes of its own patterns.

use super::cover::{ComparableMatch, Pattern};
use crate::matcher::glob::Glob;
use ipnet::IpNet;
use std::collections::HashMap;

/// The longest indexed prefix. Patterns with the same longer prefix are all compared.
const TEXT_BYTES_MAX: usize = 64;

/// Matches by the literal prefixes of their patterns. Matches of different groups are never
/// compared.
#[derive(Debug, Default)]
pub(crate) struct CoverIndex<'a> {
    /// Matches without conditions, by group.
    unconditional: HashMap<u64, Vec<usize>>,
    lists: HashMap<(u64, &'a str, PatternPrefix<'a>), Vec<usize>>,
}

/// The literal prefix of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PatternPrefix<'a> {
    Exact(&'a str),
    /// The text before the first wildcard.
    Wild(&'a str),
    Network(IpNet),
}

/// The conditions that the index uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexedBy {
    /// The path only; matches without a path condition count as unconditional.
    Path,
    /// The condition that the fewest other matches share.
    Rarest,
}

/// The indices of matches from several lists, in ascending order.
pub(crate) struct Candidates<'i> {
    lists: Vec<&'i [usize]>,
}

impl<'a> CoverIndex<'a> {
    /// Builds the index from matches with their index, in ascending order, and their group.
    pub(crate) fn new(
        matches: impl Iterator<Item = (usize, u64, &'a ComparableMatch)> + Clone,
        by: IndexedBy,
    ) -> Self {
        let mut counts: HashMap<(u64, &str, PatternPrefix<'_>), usize> = HashMap::new();
        let usable = move |attribute: &str| by == IndexedBy::Rarest || attribute == "path";
        for (_, group, shape) in matches.clone() {
            for (attribute, patterns) in shape.conditions() {
                for start in patterns.iter().filter_map(PatternPrefix::of) {
                    *counts.entry((group, attribute, start)).or_default() += 1;
                }
            }
        }
        let mut this = Self::default();
        for (place, group, shape) in matches {
            let sharing = |(attribute, patterns): &(&'a str, &'a [Pattern])| {
                let starts = patterns.iter().filter_map(PatternPrefix::of);
                starts.filter_map(|start| counts.get(&(group, *attribute, start))).sum::<usize>()
            };
            let conditions = shape.conditions().filter(|(attribute, _)| usable(attribute));
            match conditions.min_by_key(sharing) {
                None => this.unconditional.entry(group).or_default().push(place),
                Some((attribute, patterns)) => {
                    for start in patterns.iter().filter_map(PatternPrefix::of) {
                        let list = this.lists.entry((group, attribute, start)).or_default();
                        if list.last() != Some(&place) {
                            list.push(place);
                        }
                    }
                }
            }
        }
        this
    }

    /// Returns the matches of the group that may cover `shape`, possibly including `shape` itself.
    pub(crate) fn covering<'i>(&'i self, group: u64, shape: &'i ComparableMatch) -> Candidates<'i> {
        let mut lists = Vec::new();
        for (attribute, patterns) in shape.conditions() {
            if let Some(first) = patterns.first() {
                self.push(group, attribute, first, &mut lists);
            }
        }
        self.with_unconditional(group, lists)
    }

    /// Returns the matches of the group that may match every path that `pattern` matches.
    pub(crate) fn covering_path<'i>(&'i self, group: u64, pattern: &'i Pattern) -> Candidates<'i> {
        let mut lists = Vec::new();
        self.push(group, "path", pattern, &mut lists);
        self.with_unconditional(group, lists)
    }

    fn with_unconditional<'i>(&'i self, group: u64, mut lists: Vec<&'i [usize]>) -> Candidates<'i> {
        lists.extend(self.unconditional.get(&group).map(Vec::as_slice));
        Candidates { lists }
    }

    /// Adds the lists under every prefix of the pattern.
    fn push<'i>(
        &'i self,
        group: u64,
        attribute: &'i str,
        pattern: &'i Pattern,
        lists: &mut Vec<&'i [usize]>,
    ) {
        let mut look = |start: PatternPrefix<'i>| {
            lists.extend(self.lists.get(&(group, attribute, start)).map(Vec::as_slice));
        };
        let text = match pattern {
            Pattern::Network(network) => {
                let wider = std::iter::successors(Some(*network), IpNet::supernet);
                return wider.for_each(|network| look(PatternPrefix::Network(network)));
            }
            Pattern::Glob(Glob::Exact(text)) => {
                look(PatternPrefix::Exact(cut(text)));
                cut(text)
            }
            Pattern::Glob(Glob::Wild { head, .. }) => cut(head),
            Pattern::Unknown => return,
        };
        let ends = (0..=text.len()).filter_map(|end| text.get(..end));
        ends.for_each(|beginning| look(PatternPrefix::Wild(beginning)));
    }
}

impl<'a> PatternPrefix<'a> {
    fn of(pattern: &'a Pattern) -> Option<Self> {
        match pattern {
            Pattern::Network(network) => Some(Self::Network(network.trunc())),
            Pattern::Glob(Glob::Exact(text)) => Some(Self::Exact(cut(text))),
            Pattern::Glob(Glob::Wild { head, .. }) => Some(Self::Wild(cut(head))),
            // An unknown pattern covers nothing.
            Pattern::Unknown => None,
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let next = *self.lists.iter().filter_map(|list| list.first()).min()?;
        for list in &mut self.lists {
            if let [first, rest @ ..] = list
                && *first == next
            {
                *list = rest;
            }
        }
        Some(next)
    }
}
