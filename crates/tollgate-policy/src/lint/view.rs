//! The file as lints look at it: each limit with what was written for it, and which others cover it.

use super::cover::Shape;
use crate::Compiled;
use crate::diagnostic::Position;
use crate::limit::{Cost, Limit, Mode};
use crate::raw::{self, At, Text};
use crate::settings::{Front, Source};
use std::collections::HashMap;

pub(super) struct View<'a> {
    pub(super) compiled: &'a Compiled,
    pub(super) limits: Vec<Item<'a>>,
    /// Limits by the segments with which the paths they match begin; those that match any path by the empty text.
    anchors: HashMap<&'a str, Vec<usize>>,
}

/// One limit and what was written for it.
pub(super) struct Item<'a> {
    /// Its place in [`View::limits`].
    pub(super) index: usize,
    pub(super) limit: &'a Limit,
    pub(super) shape: &'a Shape,
    pub(super) entry: &'a At<raw::Limit>,
    /// The attributes of its key, in the order of `limit.key`.
    pub(super) written_key: &'a [At<Text>],
}

/// The shapes live outside the view, so that its parts can refer to them.
pub(super) fn shapes(compiled: &Compiled) -> Vec<Shape> {
    compiled.limits.iter().map(|(_, spec)| Shape::new(spec)).collect()
}

impl<'a> View<'a> {
    pub(super) fn new(compiled: &'a Compiled, shapes: &'a [Shape]) -> Self {
        let entries = compiled.file.limits.as_ref().map(|limits| limits.as_slice());
        let entries = entries.unwrap_or_default();
        let mut limits: Vec<Item<'a>> = Vec::with_capacity(compiled.limits.len());
        let mut anchors: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut nth = 0;
        let parts = compiled.limits.iter().zip(&compiled.entries).zip(shapes);
        for (index, (((limit, _), &of), shape)) in parts.enumerate() {
            let Some(entry) = entries.get(of) else { continue };
            let is_first = index == 0 || compiled.entries[index - 1] != of;
            nth = if is_first { 0 } else { nth + 1 };
            shape.anchors().for_each(|anchor| anchors.entry(anchor).or_default().push(index));
            let written_key = written_key(entry, nth);
            limits.push(Item { index, limit, shape, entry, written_key });
        }
        Self { compiled, limits, anchors }
    }

    /// One limit for each entry of the file, for lints that look at what all limits of an entry share.
    pub(super) fn firsts(&self) -> impl Iterator<Item = &Item<'a>> {
        let entries = &self.compiled.entries;
        let is_first = |index: usize| index == 0 || entries[index - 1] != entries[index];
        self.limits.iter().filter(move |item| is_first(item.index))
    }

    /// The other limits that apply to every request to which `item` applies and that can refuse it, in file order.
    pub(super) fn covering<'v>(&'v self, item: &'v Item<'a>) -> impl Iterator<Item = &'v Item<'a>> {
        let anchor = item.shape.anchors().next().unwrap_or_default();
        let covers = |other: &&Item<'_>| {
            other.index != item.index && other.refuses() && other.shape.covers(item.shape)
        };
        self.near(anchor).filter(covers)
    }

    /// The limits that may match every path below `anchor`, in file order: those indexed at it or above it. Looking
    /// at these only keeps a file of many limits on many paths from taking the square of their number.
    pub(super) fn near(&self, anchor: &str) -> impl Iterator<Item = &Item<'a>> {
        let above = anchor.match_indices('/').map(|(at, _)| &anchor[..at]);
        let mut prefixes: Vec<&str> = above.chain(["", anchor]).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let lists = prefixes.into_iter().filter_map(|prefix| self.anchors.get(prefix));
        let mut indices: Vec<usize> = lists.flatten().copied().collect();
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().filter_map(|index| self.limits.get(index))
    }

    pub(super) fn listens(&self, front: Front) -> bool {
        self.compiled.settings.listeners.iter().any(|listener| listener.front == front)
    }

    /// Whether clients' own requests are read: by the gateway, or by forward-auth, which `http` serves.
    pub(super) fn reads_requests(&self) -> bool {
        self.listens(Front::Gateway) || self.listens(Front::Http)
    }

    /// Where `identity` takes the attribute from.
    pub(super) fn identity(&self, attribute: &str) -> Option<&'a Source> {
        let mut sources = self.compiled.settings.identity.iter();
        sources.find(|(name, _)| **name == *attribute).map(|(_, source)| source)
    }
}

impl Item<'_> {
    /// Whether it can refuse anything: enforced, not unlimited, not free.
    pub(super) fn refuses(&self) -> bool {
        let limits = self.limit.numbers.is_some()
            || self.limit.tiers.iter().any(|(_, numbers)| numbers.is_some());
        self.limit.mode == Mode::Enforce && limits && self.limit.cost != Cost::Fixed(0)
    }

    /// Whether it is evaluated at all; a limit in shadow is one that is about to be enforced.
    pub(super) fn is_on(&self) -> bool {
        self.limit.mode != Mode::Off
    }

    /// The name as written, without the key that `keys` adds.
    pub(super) fn entry_name(&self) -> &str {
        self.entry.name.as_ref().map_or("", |name| &name.value)
    }

    /// Where its name is.
    pub(super) fn at(&self) -> Position {
        self.entry.name.as_ref().map_or(self.entry.at, |name| name.at)
    }

    /// The attributes of the key, each with its place.
    pub(super) fn key(&self) -> impl Iterator<Item = (&str, Position)> {
        let places = self.written_key.iter().map(|written| written.at);
        self.limit.key.iter().map(|attribute| &**attribute).zip(places)
    }
}

fn written_key(entry: &raw::Limit, nth: usize) -> &[At<Text>] {
    match (&entry.keys, &entry.key) {
        (Some(keys), _) => keys.get(nth).map(|key| key.0.as_slice()).unwrap_or_default(),
        (None, Some(key)) => &key.0,
        (None, None) => &[],
    }
}
