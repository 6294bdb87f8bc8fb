//! `GET /v1/top`: the keys with the most units, and keys by their hash.

use crate::front::admin::query::Query;
use crate::front::admin::{Admin, AdminResponse, change, json_response};
use crate::front::problem::Problem;
use crate::node::Node;
use crate::observe::keys::{ShownKey, is_hash};
use crate::observe::time::rfc3339;
use crate::observe::top::{HeavyKey, TopMeasure, TopOfLimit, TopWindow};
use hyper::StatusCode;
use serde::Serialize;
use tollgate::engine::Rules;

/// Keys of each limit, unless the call says so.
const COUNT: usize = 10;
/// The most keys of each limit: as many as are kept.
const COUNT_MAX: usize = 128;

const MEASURES: [(&str, TopMeasure); 4] = [
    ("refused", TopMeasure::Refused),
    ("admitted", TopMeasure::Admitted),
    ("near", TopMeasure::Near),
    ("shadow", TopMeasure::Shadow),
];

#[derive(Serialize)]
struct TopView {
    by: &'static str,
    window: &'static str,
    /// What the figures cover, exactly.
    from: String,
    to: String,
    /// Each node counts its own decisions.
    scope: &'static str,
    /// Decisions that no list has, since the start.
    missed: u64,
    limits: Vec<TopLimitView>,
}

#[derive(Serialize)]
struct TopLimitView {
    name: Box<str>,
    /// Units of all keys.
    units: u64,
    /// The most units that a key outside the list can have.
    unlisted_max: u64,
    keys: Vec<TopKeyView>,
}

#[derive(Serialize)]
struct TopKeyView {
    key: ShownKey,
    /// At most so many, and at least `units - error`.
    units: u64,
    error: u64,
    limit: u64,
    remaining: u64,
    last: String,
}

impl Admin {
    /// The top keys of this node.
    pub(in crate::front::admin) fn top(
        &self,
        query: Option<&str>,
    ) -> Result<AdminResponse, Problem> {
        let mut query = Query::parse(query, &["by", "limit", "window", "count"])?;
        let by = query.take_word("by", &MEASURES)?;
        let windows = [("1m", TopWindow::Minute), ("1h", TopWindow::Hour)];
        let window = query.take_word("window", &windows)?;
        let count = query.take("count").map_or(Some(COUNT), |count| count.parse().ok());
        let count = count.filter(|count| (1..=COUNT_MAX).contains(count));
        let count = count.ok_or_else(|| Problem::bad("count", "write a number from 1 to 128"))?;
        let limit = query.take("limit");
        let rules = self.node.gate.rules();
        change::require_limit(&rules, limit.as_deref())?;
        let now_us = self.node.clock.now_us();
        let tops = self.node.top.read(now_us, by, window, limit.as_deref());
        let view = TopView {
            by: by.name(),
            window: window.name(),
            from: rfc3339(window.start_us(now_us)),
            to: rfc3339(now_us),
            scope: "node",
            missed: self.node.top.missed(),
            limits: tops
                .into_iter()
                .filter_map(|top| top_of_limit(&self.node, &rules, top, count))
                .collect(),
        };
        Ok(json_response(StatusCode::OK, &view))
    }
}

/// The list of a limit; `None` for one that the policy has no more.
fn top_of_limit(node: &Node, rules: &Rules, top: TopOfLimit, count: usize) -> Option<TopLimitView> {
    // What `CL.THROTTLE` and Envoy's overrides bring has no limit in the policy, and no key that
    // an operator could name.
    let limits = rules.policy().limits();
    let limit = limits.iter().find(|limit| limit.name == top.limit)?;
    let show_key = |one: &HeavyKey| match one.key.bytes.is_empty() && !limit.key.is_empty() {
        true => ShownKey(vec![("key".into(), "too long to be kept".to_owned())]),
        false => node.keys.show(rules, limit, one.key.key_index as usize, &one.key.bytes),
    };
    let show = |one: &HeavyKey| TopKeyView {
        key: show_key(one),
        units: one.units,
        error: one.error,
        limit: one.key.last.capacity,
        remaining: one.key.last.remaining,
        last: rfc3339(one.key.last.time_us),
    };
    let hidden = top.keys.get(count).map_or(0, |key| key.units);
    Some(TopLimitView {
        name: top.limit,
        units: top.total_units,
        unlisted_max: top.unlisted_max.max(hidden),
        keys: top.keys.iter().take(count).map(show).collect(),
    })
}

/// The value behind a hash, in canonical form, where this node has seen it lately.
fn value_of_hash(node: &Node, rules: &Rules, attribute: &str, hash: &str) -> Option<String> {
    let mut found = None;
    let limits = rules.policy().limits();
    node.top.find(node.clock.now_us(), |name, one| {
        let Some(limit) = limits.iter().find(|limit| *limit.name == *name) else { return false };
        let values = limit.key_values(one.key.key_index as usize, &one.key.bytes);
        let value = values.into_iter().find(|(known, value)| {
            *known == attribute && node.keys.hash(attribute, value.as_bytes()) == hash
        });
        found = value.map(|(_, value)| value.into_owned());
        found.is_some()
    });
    found
}

/// The attributes of a call with hashes replaced by their values.
pub(in crate::front::admin) fn resolve_hashes(
    node: &Node,
    rules: &Rules,
    attributes: &[(String, String)],
) -> Result<Vec<ResolvedAttribute>, Problem> {
    let resolve = |(name, value): &(String, String)| {
        let (name, value) = (name.clone(), value.clone());
        if !is_hash(&value) {
            return Ok(ResolvedAttribute { name, value, is_canonical: false });
        }
        match value_of_hash(node, rules, &name, &value) {
            Some(value) => Ok(ResolvedAttribute { name, value, is_canonical: true }),
            None => Err(Problem::new(
                StatusCode::NOT_FOUND,
                "no key among this node's top keys of the last hour has this hash; name its value in clear",
            )
            .at(&format!("attributes.{name}"))),
        }
    };
    attributes.iter().map(resolve).collect()
}

/// An attribute that an operator named, by its value or by its hash.
pub(in crate::front::admin) struct ResolvedAttribute {
    pub(in crate::front::admin) name: String,
    pub(in crate::front::admin) value: String,
    /// Whether the value is that of a key, and not as clients send it.
    pub(in crate::front::admin) is_canonical: bool,
}
