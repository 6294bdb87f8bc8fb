//! The top keys as operators see them.

use super::{HeavyKey, TopMeasure, TopOfLimit, TopWindow};
use crate::node::Node;
use crate::observe::keys::ShownKey;
use crate::observe::time::rfc3339;
use serde::{Deserialize, Serialize};
use tollgate::engine::Rules;

/// Which top keys to show.
#[derive(Clone, Debug)]
pub(crate) struct TopQuery {
    pub(crate) by: TopMeasure,
    pub(crate) window: TopWindow,
    /// The name of a limit; `None` for all.
    pub(crate) limit: Option<String>,
    /// Keys of each limit, at most.
    pub(crate) count: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct TopView {
    pub(super) by: &'static str,
    pub(super) window: &'static str,
    /// What the figures cover, exactly.
    pub(super) from: String,
    pub(super) to: String,
    pub(super) scope: &'static str,
    /// The nodes whose decisions the figures count; none for this node alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<CountedNode>,
    /// Decisions that no list has, since the start.
    pub(super) missed: u64,
    pub(super) limits: Vec<TopLimitView>,
}

/// A node whose decisions are counted, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CountedNode {
    pub(super) node: String,
    pub(super) to: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TopLimitView {
    pub(super) name: Box<str>,
    /// Units of all keys.
    pub(super) units: u64,
    /// The most units that a key outside the list can have.
    pub(super) unlisted_max: u64,
    pub(super) keys: Vec<TopKeyView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TopKeyView {
    pub(super) key: ShownKey,
    /// At most so many, and at least `units - error`.
    pub(super) units: u64,
    pub(super) error: u64,
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) last: String,
}

impl TopLimitView {
    /// Keeps the first `count` keys.
    pub(super) fn truncate(&mut self, count: usize) {
        let hidden = self.keys.get(count).map_or(0, |key| key.units);
        self.unlisted_max = self.unlisted_max.max(hidden);
        self.keys.truncate(count);
    }
}

impl Node {
    /// The top keys of this node.
    pub(crate) fn top_of_node(&self, wanted: &TopQuery) -> TopView {
        let now_us = self.clock.now_us();
        let rules = self.gate.rules();
        let tops = self.top.read(now_us, wanted.by, wanted.window, wanted.limit.as_deref());
        let limits = tops.into_iter().filter_map(|top| self.top_of_limit(&rules, top));
        let truncated = limits.map(|mut limit| {
            limit.truncate(wanted.count);
            limit
        });
        TopView {
            by: wanted.by.name(),
            window: wanted.window.name(),
            from: rfc3339(wanted.window.start_us(now_us)),
            to: rfc3339(now_us),
            scope: "node",
            nodes: Vec::new(),
            missed: self.top.missed(),
            limits: truncated.collect(),
        }
    }

    /// The list of a limit; `None` for one that the policy has no more.
    fn top_of_limit(&self, rules: &Rules, top: TopOfLimit) -> Option<TopLimitView> {
        // What `CL.THROTTLE` and Envoy's overrides bring has no limit in the policy, and no key
        // that an operator could name.
        let limits = rules.policy().limits();
        let limit = limits.iter().find(|limit| limit.name == top.limit)?;
        let show_key = |one: &HeavyKey| match one.key.bytes.is_empty() && !limit.key.is_empty() {
            true => ShownKey(vec![("key".into(), "too long to be kept".to_owned())]),
            false => self.keys.show(rules, limit, one.key.key_index as usize, &one.key.bytes),
        };
        let show = |one: &HeavyKey| TopKeyView {
            key: show_key(one),
            units: one.units,
            error: one.error,
            limit: one.key.last.capacity,
            remaining: one.key.last.remaining,
            last: rfc3339(one.key.last.time_us),
        };
        Some(TopLimitView {
            name: top.limit,
            units: top.total_units,
            unlisted_max: top.unlisted_max,
            keys: top.keys.iter().map(show).collect(),
        })
    }
}
