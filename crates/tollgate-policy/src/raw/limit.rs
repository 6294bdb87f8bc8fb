//! An entry under `limits`.

use super::decode::{entries, field, wrong_type};
use super::{At, Decimal, Decode, DurationText, Entries, Field, List, OnStoreFailure, OneOrMany};
use super::{RateText, Text, either, raw, words};
use crate::diagnostic::{Report, codes};
use crate::grammar::{self, WrittenRate};
use crate::suggest::quoted;
use crate::yaml::{Node, Value, YamlKey};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use tollgate_core::CalendarUnit;

raw! {
    /// A named rule.
    Limit {
        /// 1 to 64 printable ASCII characters without `/`; unique.
        #[schemars(required)]
        name: Text,
        /// Which requests it applies to; all of them without it.
        r#match: Match,
        /// The attributes whose values make the key; one shared bucket without it.
        key: KeyChoice,
        /// Several keys: one limit each, named `name/attribute+attribute`.
        keys: List<PlainKey>,
        /// What a missing key attribute does.
        on_missing: OnMissing,
        /// How the limit treats a token that is present and does not verify.
        on_invalid: OnInvalid,
        /// How it counts.
        algorithm: Algorithm,
        /// How much per how long; a bare number of slots for `concurrency`.
        #[schemars(required)]
        rate: RateText,
        /// How much at once, for token-bucket, gcra and leaky-bucket.
        burst: u64,
        /// How much may wait, for leaky-bucket.
        queue: u64,
        /// The time zone of the windows, such as Europe/Berlin; for fixed-window.
        time_zone: Text,
        /// How long a slot is held at most, for concurrency.
        ttl: DurationText,
        /// Other numbers for some tiers; what a tier does not say it takes from the limit.
        tiers: Entries<LimitTier>,
        /// How many units a request costs.
        cost: Cost,
        /// Whether a refusal counts.
        mode: Mode,
        /// What happens when the store cannot decide.
        on_store_failure: OnStoreFailure,
        /// Whether clients are told the figures.
        disclose: bool,
        /// What repeated refusals lead to.
        penalty: Penalty,
        /// Whether every request asks the store.
        consistency: Consistency,
        /// Whether what was used is taken in full, even where less was left.
        debt: bool,
        /// What the answer to a request changes afterwards.
        on_response: OnResponse,
    }
}

impl Limit {
    /// The algorithm: as written, or `fixed-window` for windows of the calendar, or the default.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        let is_month = |rate: &At<RateText>| {
            let month = Some(CalendarUnit::Month);
            matches!(grammar::rate(rate), Ok(WrittenRate::Per { unit, .. }) if unit == month)
        };
        match &self.algorithm {
            Some(algorithm) => algorithm.value,
            None if self.time_zone.is_some() => Algorithm::FixedWindow,
            None if self.rate.as_ref().is_some_and(is_month) => Algorithm::FixedWindow,
            None => Algorithm::SlidingWindow,
        }
    }
}

words! {
    /// `algorithm`.
    Algorithm {
        /// Two windows, weighted; the default.
        SlidingWindow = "sliding-window",
        /// One counter per window.
        FixedWindow = "fixed-window",
        /// Every admission remembered.
        SlidingLog = "sliding-log",
        /// A bucket that refills.
        TokenBucket = "token-bucket",
        /// The same decisions from one timestamp.
        Gcra = "gcra",
        /// A strict pace, shaping when there is a queue.
        LeakyBucket = "leaky-bucket",
        /// Requests in flight.
        Concurrency = "concurrency",
    }
}

words! {
    /// `mode`.
    Mode {
        /// A refusal refuses; the default.
        Enforce = "enforce",
        /// A refusal is only reported.
        Shadow = "shadow",
        /// Not evaluated.
        Off = "off",
    }
}

words! {
    /// `on_missing`.
    OnMissing {
        /// The limit does not apply; the default.
        Skip = "skip",
        /// The request is refused.
        Refuse = "refuse",
        /// All requests without the attribute share one bucket.
        Share = "share",
    }
}

words! {
    /// `on_invalid`.
    OnInvalid {
        /// The request is refused; the default.
        Refuse = "refuse",
        /// The claims of the token count as missing.
        AsMissing = "as_missing",
    }
}

either! {
    /// The numbers of one tier.
    LimitTier {
        /// A rate, or `unlimited`.
        Rate(RateText),
        /// A rate with burst and queue.
        Form(TierForm),
    }
}

raw! {
    /// The numbers of one tier.
    TierForm {
        /// How much per how long.
        rate: RateText,
        /// How much at once.
        burst: u64,
        /// How much may wait.
        queue: u64,
    }
}

either! {
    /// `key`.
    KeyChoice {
        /// One attribute, or several together.
        Attributes(OneOrMany<Text>),
        /// The first of several keys that a request has.
        FirstOf(FirstOf),
    }
}

raw! {
    /// Several keys in the order in which they are tried.
    FirstOf {
        /// Attributes, or lists of them. A request uses the first key whose attributes it has.
        #[schemars(required)]
        first_of: List<OneOrMany<Text>>,
    }
}

/// A key in `keys`: an attribute or a list of them.
#[derive(Clone, Debug)]
pub struct PlainKey(pub OneOrMany<Text>);

impl Decode for PlainKey {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            let message = "`keys` takes attributes and lists of them, not a map";
            let help = "write `key: {first_of: [...]}` in a limit of its own";
            report.error(codes::BAD_KEY, node.at, message, help);
            return None;
        }
        OneOrMany::decode(node, report).map(Self)
    }
}

impl JsonSchema for PlainKey {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "plain-key".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OneOrMany::<Text>::json_schema(generator)
    }
}

/// `cost`.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum Cost {
    /// The same for every request.
    Fixed(u64),
    /// From the request, or from the response.
    Form(Box<CostForm>),
    /// By match: the first entry that matches counts, and 1 if none does.
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
                    let message =
                        format!("{name} is not a field of a cost: it belongs into `match`");
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

/// Whether the field belongs to an entry of a cost by match.
fn is_entry_field(key: &YamlKey) -> bool {
    matches!(key.text.as_str(), "match" | "units")
}

/// The first attribute that stands beside `units`, where it belongs into `match`.
fn misplaced_condition(entry: &Node) -> Option<&YamlKey> {
    let Value::Map(fields) = &entry.value else { return None };
    let mut keys = fields.iter().map(|(key, _)| key);
    keys.find(|key| grammar::is_built_in(&key.text))
}

raw! {
    /// The cost of requests that match.
    CostEntry {
        /// Which requests, of those that the limit applies to; all of them without it.
        r#match: Match,
        /// How many units each of them costs.
        #[schemars(required, range(min = 0, max = 4294967295_u64))]
        units: u64,
    }
}

raw! {
    /// A cost that depends on the request: `header` with `default` and `max`, or `estimate` with
    /// `response`.
    CostForm {
        /// The request header field that carries the cost.
        header: Text,
        /// The cost without that field.
        default: u64,
        /// Larger costs count as this.
        max: u64,
        /// Charged up front and settled from the response.
        estimate: u64,
        /// Where the response says what it cost.
        response: CostResponse,
    }
}

raw! {
    /// Where the response says what it cost: one of the two.
    CostResponse {
        /// A dotted path in a JSON body, such as usage.total_tokens.
        json: Text,
        /// A header field.
        header: Text,
    }
}

raw! {
    /// After `after` refusals the key is blocked for `block`, then `factor` times as long each
    /// time, up to `max`.
    Penalty {
        /// How many refusals lead to a block.
        after: u64,
        /// The first block.
        block: DurationText,
        /// How much longer each next block is; up to three decimal places.
        factor: Decimal,
        /// The longest block.
        max: DurationText,
    }
}

raw! {
    /// Statuses such as 401 or 2xx, of answers that change what their requests counted for.
    OnResponse {
        /// Requests that are answered so count for nothing.
        refund: OneOrMany<Text>,
        /// Requests that are answered so count as refusals do under `penalty`.
        penalty: OneOrMany<Text>,
    }
}

either! {
    /// `consistency`.
    Consistency {
        /// `exact` or `leased`.
        Word(ConsistencyWord),
        /// `leased` with its figures.
        Form(ConsistencyForm),
    }
}

words! {
    /// `consistency` in one word.
    ConsistencyWord {
        /// Every request asks the store; the default.
        Exact = "exact",
        /// Nodes take chunks in advance.
        Leased = "leased",
    }
}

raw! {
    /// `consistency` with figures.
    ConsistencyForm {
        /// Nodes take chunks in advance.
        #[schemars(required)]
        leased: Leased,
    }
}

raw! {
    /// How leases behave.
    Leased {
        /// How long a chunk may be spent.
        lifetime: DurationText,
        /// Smaller limits ask the store every time.
        min_limit: u64,
        /// How long nothing is granted after the store lost writes.
        quiet: DurationText,
    }
}

/// `match`: conditions by attribute, and exclusions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Match {
    /// All of them must hold.
    pub conditions: Conditions,
    /// A request to which all conditions of one of these apply is left out.
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
    /// A condition without a value is kept as one without patterns, so that it is reported and not
    /// lost.
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

impl JsonSchema for Match {
    fn schema_name() -> Cow<'static, str> {
        "Match".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let conditions = generator.subschema_for::<Conditions>();
        let patterns = generator.subschema_for::<OneOrMany<Text>>();
        json_schema!({
            "description": "Which requests a limit applies to: patterns by attribute; entries are ANDed, a list is OR.",
            "type": "object",
            "properties": {
                "not": {
                    "description": "Requests to leave out: those to which one whole map applies.",
                    "anyOf": [conditions, {"type": "array", "items": conditions}]
                }
            },
            "additionalProperties": patterns
        })
    }
}

impl JsonSchema for Conditions {
    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let patterns = generator.subschema_for::<OneOrMany<Text>>();
        json_schema!({
            "description": "Patterns by attribute.",
            "type": "object",
            "propertyNames": {"not": {"const": "not"}},
            "additionalProperties": patterns
        })
    }
}
