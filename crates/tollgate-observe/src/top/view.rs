//! Top keys as operators see them.

use super::{HeavyKey, TopKeys, TopMeasure, TopOfLimit, TopWindow};
use crate::keys::{KeySecrets, ShownKey};
use crate::time::rfc3339;
use serde::{Deserialize, Serialize};
use tollgate::engine::Rules;

/// The parameters of `GET /v1/top`.
#[derive(Clone, Debug)]
pub struct TopQuery {
    /// The measure that ranks keys.
    pub by: TopMeasure,
    /// The time window.
    pub window: TopWindow,
    /// The name of a limit; `None` for all.
    pub limit: Option<String>,
    /// Limit of keys per limit.
    pub count: usize,
}

/// The answer of `GET /v1/top`.
#[derive(Debug, Serialize)]
pub struct TopView {
    pub(super) by: &'static str,
    pub(super) window: &'static str,
    /// The start of the exact time range of the figures.
    pub(super) from: String,
    pub(super) to: String,
    pub(super) scope: &'static str,
    /// The nodes whose decisions are counted; empty for this node alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<CountedNode>,
    /// Decisions in no list, since the start.
    pub(super) missed: u64,
    pub(super) limits: Vec<TopLimitView>,
}

/// A node whose decisions are counted, and the end of its counts.
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
    /// The most units of any key outside the list.
    pub(super) unlisted_max: u64,
    pub(super) keys: Vec<TopKeyView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TopKeyView {
    pub(super) key: ShownKey,
    /// Upper bound of the units; `units - error` is the lower bound.
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

impl TopKeys {
    /// The top keys of this node, under the rules in force.
    pub fn view(
        &self,
        now_us: u64,
        rules: &Rules,
        keys: &KeySecrets,
        wanted: &TopQuery,
    ) -> TopView {
        let tops = self.read(now_us, wanted.by, wanted.window, wanted.limit.as_deref());
        let limits = tops.into_iter().filter_map(|top| TopLimitView::new(rules, keys, top));
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
            missed: self.missed(),
            limits: truncated.collect(),
        }
    }

    /// The value behind a hash, in canonical form, if this node has seen it lately.
    pub fn value_of_hash(
        &self,
        now_us: u64,
        rules: &Rules,
        keys: &KeySecrets,
        attribute: &str,
        hash: &str,
    ) -> Option<String> {
        let mut found = None;
        let limits = rules.policy().limits();
        self.find(now_us, |name, one| {
            let Some(limit) = limits.iter().find(|limit| *limit.name == *name) else {
                return false;
            };
            let values = limit.key_values(one.key.key_index as usize, &one.key.bytes);
            let value = values.into_iter().find(|(known, value)| {
                *known == attribute && keys.hash(attribute, value.as_bytes()) == hash
            });
            found = value.map(|(_, value)| value.into_owned());
            found.is_some()
        });
        found
    }
}

impl TopLimitView {
    /// The list of a limit; `None` if the policy no longer has the limit.
    fn new(rules: &Rules, keys: &KeySecrets, top: TopOfLimit) -> Option<Self> {
        // Inline limits (`CL.THROTTLE`, Envoy's overrides) are not in the policy, and have no key
        // that an operator could name.
        let limits = rules.policy().limits();
        let limit = limits.iter().find(|limit| limit.name == top.limit)?;
        let show_key = |one: &HeavyKey| {
            if one.key.bytes.is_empty() && !limit.key.is_empty() {
                ShownKey(vec![("key".into(), "too long to be kept".to_owned())])
            } else {
                keys.show(rules, limit, one.key.key_index as usize, &one.key.bytes)
            }
        };
        let show = |one: &HeavyKey| TopKeyView {
            key: show_key(one),
            units: one.units,
            error: one.error,
            limit: one.key.last.capacity,
            remaining: one.key.last.remaining,
            last: rfc3339(one.key.last.time_us),
        };
        Some(Self {
            name: top.limit,
            units: top.total_units,
            unlisted_max: top.unlisted_max,
            keys: top.keys.iter().map(show).collect(),
        })
    }
}
