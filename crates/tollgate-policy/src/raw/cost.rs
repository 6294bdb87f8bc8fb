//! `cost` and `match` of a limit.

use super::decode::{entries, field, wrong_type};
use super::{At, Decode, Field, List, OneOrMany, Text, raw};
use crate::diagnostic::{Report, codes, quoted};
use crate::grammar;
use crate::yaml::{Node, Value, YamlKey};

/// `cost`.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
pub enum Cost {
    /// A constant.
    Fixed(u64),
    /// Read from the request or the response.
    Form(Box<CostForm>),
    /// By match: the cost of the first entry that matches; 1 if none does.
    ByMatch(List<CostEntry>),
}

impl Decode for Cost {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match node.value {
            Value::Map(ref entries) if entries.iter().any(|(key, _)| is_entry_field(key)) => {
                let message = "a cost by match is a list";
                let help = "write a list: `cost: [{match: ..., units: 3}]`";
                report.error(codes::WRONG_TYPE, node.at, message, help);
                None
            }
            Value::Map(_) => CostForm::decode(node, report).map(|form| Self::Form(Box::new(form))),
            Value::List(ref items) => {
                let misplaced = items.iter().filter_map(misplaced_condition);
                let keys: Vec<&YamlKey> = misplaced.collect();
                for key in &keys {
                    let name = quoted(&key.text);
                    let message = format!("{name} is not a field of a cost: it belongs in `match`");
                    let help = format!("write `match: {{{}: ...}}`", key.text);
                    report.error(codes::UNKNOWN_FIELD, key.at, message, help);
                }
                if !keys.is_empty() {
                    return None;
                }
                List::decode(node, report).map(Self::ByMatch)
            }
            Value::Scalar { .. } => u64::decode(node, report).map(Self::Fixed),
            Value::Null => wrong_type(node, "a whole number", report),
        }
    }
}

/// Whether the field belongs to an entry of a cost list.
fn is_entry_field(key: &YamlKey) -> bool {
    matches!(key.text.as_str(), "match" | "units")
}

/// Finds the first attribute beside `units` that belongs in `match`.
fn misplaced_condition(entry: &Node) -> Option<&YamlKey> {
    let Value::Map(fields) = &entry.value else { return None };
    let mut keys = fields.iter().map(|(key, _)| key);
    keys.find(|key| grammar::is_built_in(&key.text))
}

raw! {
    /// The cost of requests that match.
    CostEntry {
        /// The requests, among those that the limit applies to; all of them by default.
        r#match: Match,
        /// The cost of each such request, in units.
        #[cfg_attr(test, schemars(required, range(min = 0, max = 4294967295_u64)))]
        units: u64,
    }
}

raw! {
    /// A cost that depends on the request: `header`, or `estimate` with `response`.
    CostForm {
        /// The request header with the cost.
        header: Text,
        /// The cost of requests without the header.
        default: u64,
        /// The largest cost; larger values are lowered to it.
        max: u64,
        /// The units charged before the response, which has the actual cost.
        estimate: u64,
        /// Where the response has the actual cost.
        response: CostResponse,
    }
}

raw! {
    /// Where the response has the actual cost: `json` or `header`.
    CostResponse {
        /// A dotted path in a JSON body, such as usage.total_tokens.
        json: Text,
        /// A response header.
        header: Text,
    }
}

/// `match`: conditions by attribute, and exclusions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Match {
    /// The conditions, which must all hold.
    pub conditions: Conditions,
    /// The exclusions: a request is left out if all conditions of one of them hold.
    pub not: Field<OneOrMany<Conditions>>,
}

/// Patterns by attribute; one of an attribute's patterns must match.
#[derive(Clone, Debug, Default)]
pub struct Conditions(pub Vec<(At<String>, At<OneOrMany<Text>>)>);

impl Decode for Match {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        let mut this = Self::default();
        for (key, node) in entries(node, report)? {
            if key.text == "not" {
                this.not = field(key, node, report);
            } else {
                this.conditions.push(key, node, report);
            }
        }
        Some(this)
    }
}

impl Decode for Conditions {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        let mut this = Self::default();
        let mut nested = false;
        for (key, node) in entries(node, report)? {
            if key.text == "not" {
                nested = true;
                let message = "`not` inside `not`";
                let help = "list the maps to exclude: `not: [{path: /a}, {path: /b}]`";
                report.error(codes::NESTED_NOT, key.at, message, help);
            } else {
                this.push(key, node, report);
            }
        }
        (!nested).then_some(this)
    }
}

impl Conditions {
    /// Adds a condition. One without a value is kept without patterns, so that it is reported.
    fn push(&mut self, key: &crate::yaml::YamlKey, node: &Node, report: &mut Report) {
        let name = At { value: key.text.clone(), at: key.at, name_at: key.at };
        let none = At { value: OneOrMany(Vec::new()), at: key.at, name_at: key.at };
        let value = match node.value {
            Value::Null => Some(none),
            _ => field(key, node, report),
        };
        self.0.extend(value.map(|value| (name, value)));
    }
}
