//! A compiled limit, from an entry under `limits`.

pub use crate::raw::{Mode, OnInvalid, OnMissing};

use crate::match_spec::MatchSpec;
use tollgate_core::{LimitParams, Penalty, Rate, state_id};

/// One limit with one key; an entry with `keys` compiles to several.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The name of the entry. With `keys`, `/` and the attributes of the key joined with `+`
    /// follow.
    pub name: Box<str>,
    /// The attributes of the key; empty if all requests share one count.
    pub key: Box<[Box<str>]>,
    /// The keys of `first_of` after the first, which is `key`. A request uses the first key whose
    /// attributes it has.
    pub fallback_keys: Box<[Box<[Box<str>]>]>,
    /// How the limit treats a missing key attribute.
    pub on_missing: OnMissing,
    /// How the limit treats a token that does not verify, if it reads claims.
    pub on_invalid: OnInvalid,
    /// The base parameters; `None` is unlimited.
    pub params: Option<LimitParams>,
    /// Parameters of the tiers that differ; `None` is unlimited.
    pub tiers: Box<[(Box<str>, Option<LimitParams>)]>,
    /// The units that a request costs.
    pub cost: CostRule,
    /// Whether the limit is enforced.
    pub mode: Mode,
    /// The failure policy.
    pub on_store_failure: OnStoreFailure,
    /// Whether clients may see the limit's figures.
    pub disclose: bool,
    /// Whether operators see keys in clear. API keys, tokens and other secrets are never shown.
    pub show_keys: bool,
    /// The penalty for repeated refusals.
    pub penalty: Option<Penalty>,
    /// Whether the store decides each request, or a lease does.
    pub consistency: Consistency,
    /// What the limit counts.
    pub counting: Counting,
    /// How requests are selected.
    pub selector: Selector,
    /// How the response changes the charge.
    pub on_response: OnResponse,
    /// Parameters that are counted beside those of the limit, and never enforced.
    pub candidate: Option<Box<CandidateParams>>,
}

/// `candidate`: parameters under trial.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CandidateParams {
    /// The base parameters.
    pub params: LimitParams,
    /// Parameters of the tiers that differ; `None` is unlimited.
    pub tiers: Box<[(Box<str>, Option<LimitParams>)]>,
}

/// How a limit selects requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// By `match`.
    #[default]
    Match,
    /// By a rule of a ratelimit file, with a key from the descriptor. `key` then only contributes
    /// to the state id.
    Descriptor,
    /// By class: requests of the class at this index and of less important classes. The limit
    /// belongs to `shed.fleet`.
    Class(usize),
    /// Never: the limit only holds the mode of `shed.adaptive`.
    Never,
    /// Along with the limit at this index, as its candidate.
    Candidate(usize),
}

impl Selector {
    /// Whether the limit belongs to a shedder.
    pub const fn is_shed(self) -> bool {
        matches!(self, Self::Class(_) | Self::Never)
    }

    /// Whether the limit is a candidate: counted beside another one, never enforced.
    pub const fn is_candidate(self) -> bool {
        matches!(self, Self::Candidate(_))
    }

    /// Whether responses omit the limit: it belongs to a shedder, or it is a candidate.
    pub const fn is_hidden(self) -> bool {
        self.is_shed() || self.is_candidate()
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Admitted units.
    #[default]
    Admitted,
    /// Requested units, including refused ones: `compat: envoy`.
    Requested,
    /// All used units, even beyond the limit. A request is admitted while any units are left:
    /// `debt: true`.
    Debt,
}

/// `cost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostRule {
    /// A constant.
    Fixed(u64),
    /// Read from an attribute, within a bound.
    Attribute {
        /// The attribute, such as `header.x-cost`.
        name: Box<str>,
        /// The cost if the attribute is absent or not a number.
        default: u64,
        /// The largest cost; larger values are lowered to it.
        max: u64,
    },
    /// By match: the cost of the first entry that matches; 1 if none does.
    ByMatch(Box<[WeightedMatch]>),
    /// An estimate that is replaced by the actual cost from the response.
    Estimate {
        /// The units that are reserved before the response.
        estimate: u64,
        /// Where the response has the actual cost.
        response: ResponseCost,
    },
}

/// The cost of requests that match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeightedMatch {
    /// The requests, among those that the limit applies to.
    pub match_spec: MatchSpec,
    /// The cost of each such request.
    pub units: u64,
}

impl WeightedMatch {
    /// Creates an entry by which matching requests cost `units`.
    pub const fn new(match_spec: MatchSpec, units: u64) -> Self {
        Self { match_spec, units }
    }
}

/// The place of the actual cost in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseCost {
    /// A dotted path in a JSON body, such as `usage.total_tokens`.
    Json(Box<str>),
    /// A header.
    Header(Box<str>),
}

/// `on_store_failure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// Admit; the row has the source `FailOpen`.
    #[default]
    Open,
    /// Refuse.
    Closed,
    /// Enforce this node's share in memory.
    Local {
        /// The number of nodes that share the limit.
        nodes: u32,
    },
    /// Enforce this rate in memory, on every node.
    LocalRate(LocalRate),
}

/// `rate` of `on_store_failure.local`: the rate of each node while the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalRate {
    /// A count per period.
    Per(Rate),
    /// A number of slots, for `concurrency`.
    Slots(u32),
}

impl LocalRate {
    /// The parameters of a single node for a limit with `params`. Returns `params` if the local
    /// rate is not stricter anywhere, or does not fit the algorithm.
    pub fn params(self, params: &LimitParams) -> LimitParams {
        let Some(local) = self.exact_params(params) else { return *params };
        let (in_long_run, at_once) = local.compare(params);
        if in_long_run.is_ge() && at_once.is_ge() { *params } else { local }
    }

    /// Returns the limit's algorithm at this rate; `None` if the rate does not fit the algorithm.
    pub(crate) fn exact_params(self, params: &LimitParams) -> Option<LimitParams> {
        let rate = match (self, params) {
            (Self::Slots(slots), LimitParams::Concurrency(_)) => {
                Rate::try_new(slots.into(), Rate::NOTHING.period_us()).ok()?
            }
            (Self::Slots(_), _) | (Self::Per(_), LimitParams::Concurrency(_)) => return None,
            (Self::Per(rate), _) => rate,
        };
        params.at_rate(rate).ok()
    }
}

/// `consistency`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// The store decides every request.
    #[default]
    Exact,
    /// Leases decide: units taken from the store in advance.
    Leased {
        /// The lifetime of a lease.
        lifetime_us: u64,
        /// Limits below this are decided by the store.
        min_limit: u64,
        /// The grace period after the store lost writes. No leases are granted in it.
        quiet_us: u64,
    },
}

/// `on_response`: statuses of responses that change the charge of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnResponse {
    /// Statuses that refund the request.
    pub refund: Box<[Statuses]>,
    /// Statuses that count as a violation under `penalty`.
    pub penalty: Box<[Statuses]>,
}

/// One status, or a class such as 4xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    first: u16,
    last: u16,
}

impl Statuses {
    /// Parses `401` or `4xx`.
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

    /// Whether the status is in the range.
    pub const fn contains(self, status: u16) -> bool {
        self.first <= status && status <= self.last
    }

    /// Whether the ranges have a status in common.
    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl OnResponse {
    /// Whether no status changes the charge.
    pub fn is_empty(&self) -> bool {
        self.refund.is_empty() && self.penalty.is_empty()
    }
}

impl Limit {
    /// A limit with defaults for all other fields.
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
            show_keys: false,
            penalty: None,
            consistency: Consistency::default(),
            counting: Counting::default(),
            selector: Selector::default(),
            on_response: OnResponse::default(),
            candidate: None,
        }
    }

    /// Returns the limit that counts the candidate of this limit, which is at index `base`. Its
    /// name cannot occur in a file.
    pub fn candidate_limit(&self, base: usize) -> Option<Self> {
        let candidate = self.candidate.as_deref()?;
        Some(Self {
            name: format!("{}//candidate", self.name).into(),
            params: Some(candidate.params),
            tiers: candidate.tiers.clone(),
            selector: Selector::Candidate(base),
            mode: if self.mode == Mode::Off { Mode::Off } else { Mode::Shadow },
            penalty: None,
            candidate: None,
            ..self.clone()
        })
    }

    /// The id of the state under `params`, which belong to the limit or to one of its tiers. Tiers
    /// with the same period share state. Calendar windows of different time zones do not.
    pub fn state_id(&self, params: &LimitParams) -> u64 {
        self.state_id_by(&self.key, params)
    }

    /// The state id for `key`, one of [`keys`](Self::keys). The order of the keys does not matter,
    /// so reordering them keeps the counts.
    pub(crate) fn state_id_by(&self, key: &[Box<str>], params: &LimitParams) -> u64 {
        let zone = match params {
            LimitParams::CalendarWindow(window) => window.zone(),
            _ => None,
        };
        let of_zone = zone.map(|zone| format!("{} {}", params.algorithm(), zone.name()));
        let algorithm = of_zone.as_deref().unwrap_or(params.algorithm());
        state_id(&self.name, key, algorithm, params.period_us())
    }

    /// The keys that requests may use, in the order in which they are tried. There is one without
    /// `first_of`.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[Box<str>]> + DoubleEndedIterator + Clone {
        (0..self.fallback_keys.len() + 1).map(|place| match place.checked_sub(1) {
            None => &*self.key,
            Some(place) => &*self.fallback_keys[place],
        })
    }

    /// Returns the key for a request with these attributes: the first complete key, or the last if
    /// none is complete.
    pub fn key_used(&self, is_present: impl Fn(&str) -> bool) -> &[Box<str>] {
        let place = first_complete(self.keys(), |attribute| is_present(attribute));
        self.keys().nth(place).unwrap_or(&self.key)
    }
}

/// Whether `name` is the name of the limit, or of the entry whose `keys` made it.
#[inline]
pub fn is_named(limit: &str, name: &str) -> bool {
    limit.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The index of the first key whose parts are all present, or of the last key if none is complete.
pub(crate) fn first_complete<'k, T: 'k>(
    keys: impl ExactSizeIterator<Item = &'k [T]>,
    is_present: impl Fn(&'k T) -> bool,
) -> usize {
    let last = keys.len().saturating_sub(1);
    let mut keys = keys;
    keys.position(|key| key.iter().all(&is_present)).unwrap_or(last)
}
