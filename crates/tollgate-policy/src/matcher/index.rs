//! From a path to the few limits that may apply to it, however many there are.
//!
//! Paths without wildcards are looked up whole. Globs hang in a tree of segments, each at the end
//! of the whole segments it begins with, so a request meets only those along its own path. Limits
//! that say nothing about the path always match.

use rustc_hash::FxHashMap;

use super::glob::Glob;
use super::{Matcher, Patterns};

/// A limit's place in the file, and whether its path condition is still to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathMatch(u32);

impl PathMatch {
    fn new(limit: usize, must_check_path: bool) -> Self {
        // A policy has fewer than 2^31 limits; its constructor sees to that.
        Self((limit as u32) << 1 | u32::from(must_check_path))
    }

    pub(crate) const fn limit(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) const fn must_check_path(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Limits by path.
#[derive(Debug, Default)]
pub(crate) struct PathIndex {
    always: Vec<PathMatch>,
    exact: FxHashMap<Box<str>, Vec<PathMatch>>,
    tree: Vec<SegmentNode>,
}

/// A segment. The first node is the root, above the empty segment with which absolute paths begin.
#[derive(Debug, Default)]
struct SegmentNode {
    children: FxHashMap<Box<[u8]>, usize>,
    path_matches: Vec<PathMatch>,
}

impl PathIndex {
    /// Adds a limit; those added later come later in the file.
    pub(crate) fn insert(&mut self, limit: usize, matcher: &Matcher) {
        match matcher.path.as_ref().map(|test| &test.patterns) {
            Some(Patterns::Text { exact, globs }) => {
                for path in exact {
                    let path_matches = self.exact.entry(path.clone()).or_default();
                    path_matches.push(PathMatch::new(limit, false));
                }
                for glob in globs {
                    let path_match = PathMatch::new(limit, !glob.is_whole_subtree());
                    self.node(glob).path_matches.push(path_match);
                }
            }
            _ => self.always.push(PathMatch::new(limit, false)),
        }
    }

    /// The limits that may apply to a path, in file order, into a vector that is reused.
    pub(crate) fn find(&self, path: Option<&str>, found: &mut Vec<PathMatch>) {
        found.clear();
        found.extend_from_slice(&self.always);
        let always = found.len();
        if let Some(path) = path {
            found.extend(self.exact.get(path).into_iter().flatten());
            self.walk(path, found);
        }
        if found.len() > always {
            found.sort_unstable();
            // Of two ways to one limit the one without a check comes first and stays.
            found.dedup_by_key(|path_match| path_match.limit());
        }
    }

    fn walk(&self, path: &str, found: &mut Vec<PathMatch>) {
        let Some(mut node) = self.tree.first() else { return };
        found.extend_from_slice(&node.path_matches);
        for segment in segments(path) {
            let child = node.children.get(segment).and_then(|place| self.tree.get(*place));
            let Some(child) = child else { return };
            found.extend_from_slice(&child.path_matches);
            node = child;
        }
    }

    /// The node at the end of the segments a glob begins with.
    fn node(&mut self, glob: &Glob) -> &mut SegmentNode {
        if self.tree.is_empty() {
            self.tree.push(SegmentNode::default());
        }
        let mut place = 0;
        for segment in glob.anchor().into_iter().flat_map(segments) {
            let next = self.tree.len();
            place = *self.tree[place].children.entry(segment.into()).or_insert(next);
            if place == next {
                self.tree.push(SegmentNode::default());
            }
        }
        &mut self.tree[place]
    }
}

/// Cut byte by byte: segments are too short for the search that strings use.
fn segments(path: &str) -> impl Iterator<Item = &[u8]> {
    path.as_bytes().split(|byte| *byte == b'/')
}
