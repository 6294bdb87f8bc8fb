//! An entry under `limits`.

use super::{At, Decimal, Decode, DurationText, Entries, List, OnStoreFailure, OneOrMany};
use super::{Cost, Match, RateText, Text, either, raw, words};
use crate::diagnostic::{Report, codes};
use crate::grammar;
use crate::yaml::{Node, Value};
use tollgate_core::CalendarUnit;
use tollgate_core::written_rate::WrittenRate;

raw! {
    /// A named rule.
    Limit {
        /// The name: 1 to 64 printable ASCII characters without `/`; unique.
        #[cfg_attr(test, schemars(required))]
        name: Text,
        /// The requests that the limit applies to; all of them by default.
        r#match: Match,
        /// The attributes whose values form the key. Without a key, all requests share one bucket.
        key: KeyChoice,
        /// Several keys: one limit for each, named `name/attribute+attribute`.
        keys: List<PlainKey>,
        /// How the limit treats a missing key attribute.
        on_missing: OnMissing,
        /// How the limit treats a token that is present but does not verify.
        on_invalid: OnInvalid,
        /// The algorithm.
        algorithm: Algorithm,
        /// The rate, such as `100/min`; for concurrency, a number of slots.
        #[cfg_attr(test, schemars(required))]
        rate: RateText,
        /// The units that are admitted at once; for token-bucket, gcra and leaky-bucket.
        burst: u64,
        /// The units that may wait; for leaky-bucket.
        queue: u64,
        /// The time zone of the windows, such as Europe/Berlin; for fixed-window.
        time_zone: Text,
        /// The longest time that a slot is held; for concurrency.
        ttl: DurationText,
        /// Parameters by tier. A tier inherits what it does not set from the limit.
        tiers: Entries<LimitTier>,
        /// The cost of a request, in units.
        cost: Cost,
        /// Whether the limit is enforced.
        mode: Mode,
        /// What the limit does when the store cannot decide.
        on_store_failure: OnStoreFailure,
        /// Whether clients see the figures of the limit.
        disclose: bool,
        /// Whether operators see keys in clear: in top, tail, dashboard and records.
        show_keys: bool,
        /// The penalty for repeated refusals.
        penalty: Penalty,
        /// Whether the store decides every request.
        consistency: Consistency,
        /// Whether the full cost is charged even if less is left.
        debt: bool,
        /// How the response changes the charge.
        on_response: OnResponse,
        /// Parameters to count on the same traffic, without enforcing them.
        candidate: CandidateForm,
    }
}

raw! {
    /// Parameters under trial. A candidate inherits what it does not set from the limit.
    CandidateForm {
        /// The algorithm.
        algorithm: Algorithm,
        /// The rate, such as `100/min`.
        rate: RateText,
        /// The units that are admitted at once; for token-bucket, gcra and leaky-bucket.
        burst: u64,
        /// The units that may wait; for leaky-bucket.
        queue: u64,
        /// The time zone of the windows; for fixed-window.
        time_zone: Text,
        /// Parameters by tier.
        tiers: Entries<LimitTier>,
    }
}

impl Limit {
    /// The algorithm: as written, else `fixed-window` for calendar windows, else the default.
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
        /// The count of the previous window, weighted, plus the current one; the default.
        SlidingWindow = "sliding-window",
        /// One count for each window.
        FixedWindow = "fixed-window",
        /// The time of every admission.
        SlidingLog = "sliding-log",
        /// A bucket that refills at a rate.
        TokenBucket = "token-bucket",
        /// The decisions of a token bucket, from one timestamp.
        Gcra = "gcra",
        /// A strict pace; with a queue, requests wait for their turn.
        LeakyBucket = "leaky-bucket",
        /// A number of requests in flight.
        Concurrency = "concurrency",
    }
}

words! {
    /// `mode`.
    Mode {
        /// The limit refuses requests; the default.
        Enforce = "enforce",
        /// Refusals are only reported.
        Shadow = "shadow",
        /// The limit is not evaluated.
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
    /// The parameters of one tier.
    LimitTier {
        /// A rate, or `unlimited`.
        Rate(RateText),
        /// A rate with burst and queue.
        Form(TierForm),
    }
}

raw! {
    /// The parameters of one tier.
    TierForm {
        /// The rate, such as `100/min`.
        rate: RateText,
        /// The units that are admitted at once.
        burst: u64,
        /// The units that may wait.
        queue: u64,
    }
}

either! {
    /// `key`.
    KeyChoice {
        /// One attribute, or several together.
        Attributes(OneOrMany<Text>),
        /// The first complete key of several.
        FirstOf(FirstOf),
    }
}

raw! {
    /// Several keys, in the order in which they are tried.
    FirstOf {
        /// Attributes, or lists of them. A request uses the first key whose attributes it has.
        #[cfg_attr(test, schemars(required))]
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

raw! {
    /// The penalty: after `after` refusals the key is blocked for `block`, then longer by `factor`,
    /// up to `max`.
    Penalty {
        /// The number of refusals before a block.
        after: u64,
        /// The length of the first block.
        block: DurationText,
        /// The factor by which each block is longer than the last; up to three decimal places.
        factor: Decimal,
        /// The length of the longest block.
        max: DurationText,
    }
}

raw! {
    /// Statuses of responses, such as 401 or 2xx, that change the charge of their request.
    OnResponse {
        /// Statuses that refund the request.
        refund: OneOrMany<Text>,
        /// Statuses that count as a refusal under `penalty`.
        penalty: OneOrMany<Text>,
    }
}

either! {
    /// `consistency`.
    Consistency {
        /// `exact` or `leased`.
        Word(ConsistencyWord),
        /// `leased` with settings.
        Form(ConsistencyForm),
    }
}

words! {
    /// `consistency` in one word.
    ConsistencyWord {
        /// The store decides every request; the default.
        Exact = "exact",
        /// Nodes lease chunks of the limit in advance.
        Leased = "leased",
    }
}

raw! {
    /// `consistency` with settings.
    ConsistencyForm {
        /// Nodes lease chunks of the limit in advance.
        #[cfg_attr(test, schemars(required))]
        leased: Leased,
    }
}

raw! {
    /// The settings of leases.
    Leased {
        /// The time in which a chunk must be spent.
        lifetime: DurationText,
        /// Limits below this are decided by the store.
        min_limit: u64,
        /// The grace period after the store lost writes, in which no leases are granted.
        quiet: DurationText,
    }
}
