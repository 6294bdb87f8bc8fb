//! A compiled limit: what a valid entry under `limits:` means.

pub use crate::raw::{Mode, OnInvalid, OnMissing};

use crate::match_spec::MatchSpec;
use crate::state_id;
use tollgate_core::{LimitParams, Penalty};

/// One limit with one key; an entry with `keys` compiles to several.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// As shown: the entry's name, followed by `/` and the key's attributes joined with `+` for an
    /// entry with `keys`.
    pub name: Box<str>,
    /// The attributes whose values make the key; none for one shared bucket.
    pub key: Box<[Box<str>]>,
    /// The keys of `first_of` after the first, which is `key`. A request uses the first key whose
    /// attributes it has.
    pub fallback_keys: Box<[Box<[Box<str>]>]>,
    /// What a missing key attribute does.
    pub on_missing: OnMissing,
    /// How the limit treats a token that does not verify, if it reads claims.
    pub on_invalid: OnInvalid,
    /// The base numbers; `None` is unlimited.
    pub params: Option<LimitParams>,
    /// Numbers by tier, where they differ; `None` is unlimited.
    pub tiers: Box<[(Box<str>, Option<LimitParams>)]>,
    /// How many units a request costs.
    pub cost: CostRule,
    /// Whether a refusal counts.
    pub mode: Mode,
    /// What happens when the store cannot decide.
    pub on_store_failure: OnStoreFailure,
    /// Whether the quota's figures may be shown.
    pub disclose: bool,
    /// What repeated refusals lead to.
    pub penalty: Option<Penalty>,
    /// Decided by the store each time, or from chunks taken in advance.
    pub consistency: Consistency,
    /// What is counted against it.
    pub counting: Counting,
    /// Whether it is found by its place alone, with a key that comes with it, as limits of
    /// ratelimit files are. Then `key` only tells its state apart from that of others.
    pub is_by_descriptor: bool,
    /// What the answer to a request changes afterwards.
    pub on_response: OnResponse,
}

/// What is counted against a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// What was admitted.
    #[default]
    Admitted,
    /// What was asked for, refused or not: `compat: envoy`.
    Requested,
    /// What was used, in full, even where less was left and whoever refuses; a request passes as
    /// long as anything is left: `debt: true`.
    Debt,
}

/// `cost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// The same for every request.
    Fixed(u64),
    /// From an attribute, within a bound.
    Attribute {
        /// Where it comes from, such as `header.x-cost`.
        name: Box<str>,
        /// When it is absent or not a number.
        default: u64,
        /// Larger values count as this.
        max: u64,
    },
    /// By what the request matches: the first that matches counts, and 1 where none does.
    ByMatch(Box<[WeightedMatch]>),
    /// An estimate, settled from the response.
    Estimate {
        /// Reserved up front.
        estimate: u64,
        /// The path of the actual figure in the response's JSON, or the name of its header.
        response: ResponseCost,
    },
}

/// The cost of requests that match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeightedMatch {
    /// Which requests, of those that the limit applies to.
    pub match_spec: MatchSpec,
    /// How many units each of them costs.
    pub units: u64,
}

impl WeightedMatch {
    /// Requests that match cost so many units.
    pub const fn new(match_spec: MatchSpec, units: u64) -> Self {
        Self { match_spec, units }
    }
}

/// Where a response says what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseCost {
    /// A dotted path in a JSON body, such as `usage.total_tokens`.
    Json(Box<str>),
    /// A header field.
    Header(Box<str>),
}

/// `on_store_failure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Admit, and count it.
    #[default]
    Open,
    /// Refuse.
    Closed,
    /// Enforce this node's share in memory.
    Local {
        /// How many nodes share the limit.
        nodes: u32,
    },
}

/// `consistency`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// The store decides every request.
    #[default]
    Exact,
    /// Decided from chunks taken in advance.
    Leased {
        /// How long a chunk may be spent.
        lifetime_us: u64,
        /// Limits below this are decided by the store.
        min_limit: u64,
        /// How long nothing is granted after the store lost writes.
        quiet_us: u64,
    },
}

/// `on_response`: statuses of answers that change what their requests counted for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnResponse {
    /// Requests that are answered so count for nothing.
    pub refund: Box<[Statuses]>,
    /// Requests that are answered so count as refusals do under `penalty`.
    pub penalty: Box<[Statuses]>,
}

/// One status, or all that begin with one digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    first: u16,
    last: u16,
}

impl Statuses {
    /// `401`, or `4xx`.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = match text.as_bytes() {
            [digit @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                let hundreds = u16::from(digit - b'0') * 100;
                (hundreds, hundreds + 99)
            }
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => {
                let status = text.parse().ok()?;
                (status, status)
            }
            _ => return None,
        };
        Some(Self { first, last })
    }

    /// Whether this status is one of them.
    pub const fn contains(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }

    /// Whether any status is one of both.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl OnResponse {
    /// Whether nothing depends on the answer.
    pub fn is_empty(&self) -> bool {
        self.refund.is_empty() && self.penalty.is_empty()
    }
}

impl Limit {
    /// A limit with defaults for all else; its fields can be changed afterwards.
    pub fn new(name: &str, key: &[&str], params: Option<LimitParams>) -> Self {
        Self {
            name: name.into(),
            key: key.iter().map(|attribute| Box::from(*attribute)).collect(),
            fallback_keys: Box::default(),
            on_missing: OnMissing::default(),
            on_invalid: OnInvalid::default(),
            params,
            tiers: Box::default(),
            cost: CostRule::Fixed(1),
            mode: Mode::default(),
            on_store_failure: OnStoreFailure::default(),
            disclose: true,
            penalty: None,
            consistency: Consistency::default(),
            counting: Counting::default(),
            is_by_descriptor: false,
            on_response: OnResponse::default(),
        }
    }

    /// The state's identity under `numbers`, which belong to the limit or to one of its tiers.
    /// Tiers share state as long as their period is the same. Windows of the calendar belong to
    /// their time zone too.
    pub fn state_id(&self, params: &LimitParams) -> u64 {
        self.state_id_by(&self.key, params)
    }

    /// The state's identity for requests that use `key`, one of [`keys`](Self::keys). It does not
    /// depend on the order of the keys, so each keeps its counts when they change places.
    pub(crate) fn state_id_by(&self, key: &[Box<str>], params: &LimitParams) -> u64 {
        let zone = match params {
            LimitParams::CalendarWindow(window) => window.zone(),
            _ => None,
        };
        let of_zone = zone.map(|zone| format!("{} {}", params.algorithm(), zone.name()));
        let algorithm = of_zone.as_deref().unwrap_or(params.algorithm());
        state_id(&self.name, key, algorithm, params.period_us())
    }

    /// The keys that requests may use, in the order they are tried; a single key without
    /// `first_of`.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[Box<str>]> + DoubleEndedIterator + Clone {
        (0..self.fallback_keys.len() + 1).map(|place| match place.checked_sub(1) {
            None => &*self.key,
            Some(place) => &*self.fallback_keys[place],
        })
    }

    /// The key that a request with these attributes uses: the first that is complete, or the last
    /// where none is.
    pub fn key_used(&self, is_present: impl Fn(&str) -> bool) -> &[Box<str>] {
        let place = first_complete(self.keys(), |attribute| is_present(attribute));
        self.keys().nth(place).unwrap_or(&self.key)
    }
}

/// The place of the first key whose parts are all present; that of the last key where none is
/// complete.
pub(crate) fn first_complete<'k, T: 'k>(
    keys: impl ExactSizeIterator<Item = &'k [T]>,
    is_present: impl Fn(&'k T) -> bool,
) -> usize {
    let last = keys.len().saturating_sub(1);
    let mut keys = keys;
    keys.position(|key| key.iter().all(&is_present)).unwrap_or(last)
}
