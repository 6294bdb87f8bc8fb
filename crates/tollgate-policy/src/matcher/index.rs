//! Finds the few limits that may apply to a path, at a cost that does not grow with the number of
//! limits.
//!
//! Paths without wildcards are looked up in a hash table. Globs are in a tree of segments, each at
//! the node of its leading whole segments. So a request visits only the nodes along its path.
//! Limits without a path condition always match.

use rustc_hash::FxHashMap;

use super::glob::Glob;
use super::{Matcher, Patterns};

/// The index of a limit, and whether its path condition must still be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathMatch(u32);

impl PathMatch {
    fn new(limit: usize, must_check_path: bool) -> Self {
        // `Policy::new` bounds the number of limits below 2^31.
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

/// A node for a segment. The first node is the root, above the empty segment that absolute paths
/// begin with.
#[derive(Debug, Default)]
struct SegmentNode {
    children: FxHashMap<Box<[u8]>, usize>,
    path_matches: Vec<PathMatch>,
}

impl PathIndex {
    /// Adds a limit. Limits must be added in file order.
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

    /// Finds the limits that may apply to a path, in file order. Reuses the vector `found`.
    pub(crate) fn find(&self, path: Option<&str>, found: &mut Vec<PathMatch>) {
        found.clear();
        found.extend_from_slice(&self.always);
        let always = found.len();
        if let Some(path) = path {
            found.extend(self.exact.get(path).into_iter().flatten());
            self.walk(path, found);
        }
        if found.len() > always.max(1) {
            found.sort_unstable();
            // If a limit was found twice, the entry without a check sorts first and is kept.
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
            if child.children.is_empty() {
                return;
            }
            node = child;
        }
    }

    /// Returns the node of the leading segments of a glob.
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

/// Splits byte by byte: segments are too short for the vectorised search of strings.
fn segments(path: &str) -> impl Iterator<Item = &[u8]> {
    path.as_bytes().split(|byte| *byte == b'/')
}
