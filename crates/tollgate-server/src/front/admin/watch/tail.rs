//! `GET /v1/tail`: decisions as they happen.

use super::{EventSource, push_event, too_many_streams};
use crate::front::admin::encode::seconds;
use crate::front::admin::query::Query;
use crate::front::admin::watch::top::{ResolvedAttribute, resolve_hashes};
use crate::front::admin::{Admin, change};
use crate::front::problem::Problem;
use crate::node::Node;
use serde::Serialize;
use serde_json::{json, value::RawValue};
use std::sync::Arc;
use std::time::Duration;
use tollgate::engine::Rules;
use tollgate_observe::keys::ShownKey;
use tollgate_observe::tail::{SAMPLE_ALL, TailDecision, TailFilter, TailReader};
use tollgate_observe::time::rfc3339;
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::is_named;

/// Limit of attributes in a filter.
const ATTRIBUTES_MAX: usize = 8;

/// The event source of one reader.
pub(super) struct TailSource {
    node: Arc<Node>,
    reader: TailReader,
}

#[derive(Serialize)]
struct DecisionView<'a> {
    time: String,
    limit: &'a str,
    key: ShownKey,
    verdict: &'static str,
    units: u64,
    /// The limit's capacity, and the units left.
    capacity: u64,
    remaining: u64,
    retry_after: Option<Box<RawValue>>,
    source: &'static str,
}

impl Admin {
    /// Creates the event source for a query: `refused`, `limit`, `sample`, and attributes of keys.
    pub(super) fn tail(&self, query: Option<&str>) -> Result<TailSource, Problem> {
        let mut query = Query::parse(query, &[])?;
        let refused = [("false", false), ("true", true), ("", true)];
        let is_refused_only = query.take_word("refused", &refused)?;
        let limit = query.take("limit").map(String::into_boxed_str);
        let sample_ppm = match query.take("sample") {
            None => SAMPLE_ALL,
            Some(text) => sample(&text)?,
        };
        let rules = self.node.gate.rules();
        if let Some(name) = &limit
            && !rules.policy().nameable_limits().any(|(_, limit)| is_named(&limit.name, name))
        {
            return Err(change::no_such_limit(&rules, name).at("limit"));
        }
        let attributes = query.into_rest();
        if attributes.len() > ATTRIBUTES_MAX {
            return Err(Problem::bad("query", "name at most 8 attributes"));
        }
        let attributes = resolve_hashes(&self.node, &rules, &attributes)?;
        let facts = change::facts(&rules, &attributes, change::ANY_PATH)?;
        let canonical = |attribute: &ResolvedAttribute| canonical_value(&rules, &facts, attribute);
        let attributes = attributes.iter().map(canonical).collect::<Result<_, _>>()?;
        let filter = TailFilter { is_refused_only, limit, attributes, sample_ppm };
        let reader = self.node.tail.read(filter).ok_or_else(too_many_streams)?;
        Ok(TailSource { node: self.node.clone(), reader })
    }
}

/// An attribute in the form of keys.
fn canonical_value(
    rules: &Rules,
    facts: &Facts<'_>,
    ResolvedAttribute { name, .. }: &ResolvedAttribute,
) -> Result<(Box<str>, Box<str>), Problem> {
    let limits = rules.policy().limits();
    let is_key = |keys: &[Box<str>]| keys.iter().any(|key| **key == **name);
    if !limits.iter().any(|limit| limit.keys().any(is_key)) {
        let detail = "no limit has this attribute in its key; the parameters are `refused`, `limit`, `sample` and attributes of keys";
        return Err(Problem::bad(name, detail));
    }
    let value = facts.get(name).ok_or_else(|| Problem::bad(name, "the value is empty"))?;
    Ok((name.as_str().into(), value.into()))
}

/// Parses a share such as `1%` or `0.5%` to parts per million.
fn sample(text: &str) -> Result<u32, Problem> {
    let bad = || Problem::bad("sample", "write a share from 0.0001% to 100%, such as 1%");
    let digits = text.strip_suffix('%').ok_or_else(bad)?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return Err(bad());
    }
    let ppm: u32 = format!("{whole}{part:0<4}").parse().map_err(|_| bad())?;
    Some(ppm).filter(|ppm| (1..=SAMPLE_ALL).contains(ppm)).ok_or_else(bad)
}

impl EventSource for TailSource {
    const EVERY: Duration = Duration::from_millis(100);

    fn write(&mut self, out: &mut Vec<u8>) {
        let (decisions, skipped) = self.reader.take();
        if !decisions.is_empty() {
            let rules = self.node.gate.rules();
            for decision in &decisions {
                push_event(out, "decision", &view(&self.node, &rules, decision));
            }
        }
        if skipped > 0 {
            push_event(out, "skipped", &json!({"decisions": skipped}));
        }
    }
}

fn view<'a>(node: &Node, rules: &Rules, decision: &'a TailDecision) -> DecisionView<'a> {
    let limits = rules.policy().limits();
    let limit = limits.iter().find(|limit| limit.name == decision.limit);
    let key = match (limit, &decision.key) {
        (Some(limit), Some(key)) => node.keys.show(rules, limit, decision.key_index, key),
        // An inline limit, a limit removed by a reload, or a long key.
        (_, Some(key)) => ShownKey(vec![("key".into(), node.keys.hash("key", key))]),
        (_, None) => ShownKey(vec![("key".into(), "too long to be shown".to_owned())]),
    };
    DecisionView {
        time: rfc3339(decision.time_us),
        limit: &decision.limit,
        key,
        verdict: decision.verdict.name(),
        units: decision.units,
        capacity: decision.capacity,
        remaining: decision.remaining,
        retry_after: decision.retry_after_us.map(seconds),
        source: decision.source.as_str(),
    }
}

#[cfg(test)]
mod tests;
