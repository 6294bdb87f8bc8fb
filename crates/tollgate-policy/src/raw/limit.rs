//! An entry under `limits`.

use super::{At, Decimal, Decode, DurationText, Entries, List, OnStoreFailure, OneOrMany};
use super::{Cost, Match, RateText, Text, either, raw, words};
use crate::diagnostic::{Report, codes};
use crate::grammar;
use crate::yaml::{Node, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;
use tollgate_core::CalendarUnit;
use tollgate_core::written_rate::WrittenRate;

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
        /// Whether operators see its keys in clear: in top, tail, dashboard and records.
        show_keys: bool,
        /// What repeated refusals lead to.
        penalty: Penalty,
        /// Whether every request asks the store.
        consistency: Consistency,
        /// Whether what was used is taken in full, even where less was left.
        debt: bool,
        /// What the answer to a request changes afterwards.
        on_response: OnResponse,
        /// Numbers to count beside these, on the same traffic; never enforced.
        candidate: CandidateForm,
    }
}

raw! {
    /// Numbers that a limit might get. What it does not say it takes from the limit.
    CandidateForm {
        /// How it counts.
        algorithm: Algorithm,
        /// How much per how long.
        rate: RateText,
        /// How much at once, for token-bucket, gcra and leaky-bucket.
        burst: u64,
        /// How much may wait, for leaky-bucket.
        queue: u64,
        /// The time zone of the windows; for fixed-window.
        time_zone: Text,
        /// Other numbers for some tiers.
        tiers: Entries<LimitTier>,
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

raw! {
    /// After `after` refusals the key is blocked for `block`, then longer by `factor`, up to `max`.
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
