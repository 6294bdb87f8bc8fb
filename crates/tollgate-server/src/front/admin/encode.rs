//! Encodes answers: the policy in force, and the state of a key.

use super::policy_control::PolicyOrigin;
use crate::front::http::encode;
use crate::node::modes::ListedOverride;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tollgate::engine::{CandidateCounts, Inspected, ModeOverride, Rules};
use tollgate::store::LedgerReport;
use tollgate_core::{Algorithm, LimitParams, Zone};
use tollgate_observe::time::rfc3339;
use tollgate_policy::Diagnostic;
use tollgate_policy::facts::{Facts, digest};
use tollgate_policy::limit::{Limit, Mode};
use tollgate_policy::settings::{AttributeSource, Settings, TierSource};

/// The answer of `GET /v1/policy`.
#[derive(Serialize)]
pub(super) struct PolicyView<'a> {
    generation: u64,
    file: Option<String>,
    last_reload: Option<ReloadView>,
    limits: Vec<LimitView<'a>>,
    /// Warnings about the file.
    pub(super) lints: &'a [Diagnostic],
    /// Mode overrides; later ones win. Overrides of unknown limits wait for a policy with these
    /// limits.
    overrides: &'a [ListedOverride],
}

#[derive(Serialize)]
struct ReloadView {
    time: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct LimitView<'a> {
    name: &'a str,
    /// The mode in effect.
    mode: &'static str,
    /// The mode in the file.
    configured: &'static str,
    overridden: bool,
    key: KeyNamesView<'a>,
    #[serde(flatten)]
    params: NumbersView,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tiers: BTreeMap<&'a str, NumbersView>,
    disclose: bool,
    penalty: bool,
    /// The counts of the limit's candidate on this node, since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<CandidateView>,
}

#[derive(Serialize)]
struct CandidateView {
    #[serde(flatten)]
    params: NumbersView,
    same: u64,
    would_refuse: u64,
    would_admit: u64,
    /// Keys with a request that the candidate decided differently.
    keys: u64,
}

impl CandidateView {
    fn new(limit: &Limit, known: &[(Box<str>, CandidateCounts)]) -> Option<Self> {
        let candidate = limit.candidate.as_ref()?;
        let counts = known.iter().find(|(name, _)| *name == limit.name);
        let CandidateCounts { same, would_refuse, would_admit, keys, .. } =
            counts.map(|(_, counts)| *counts).unwrap_or_default();
        let params = NumbersView::new(Some(&candidate.params));
        Some(Self { params, same, would_refuse, would_admit, keys })
    }
}

/// A limit's key, as the file may write it.
#[derive(Serialize)]
#[serde(untagged)]
enum KeyNamesView<'a> {
    Attributes(&'a [Box<str>]),
    FirstOf { first_of: Vec<&'a [Box<str>]> },
}

impl<'a> KeyNamesView<'a> {
    fn of(limit: &'a Limit) -> Self {
        if limit.fallback_keys.is_empty() {
            Self::Attributes(&limit.key)
        } else {
            Self::FirstOf { first_of: limit.keys().collect() }
        }
    }
}

#[derive(Serialize)]
pub(super) struct NumbersView {
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'static str>,
    rate: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<&'static str>,
}

impl<'a> PolicyView<'a> {
    pub(super) fn new(
        rules: &'a Rules,
        configured: &[Mode],
        overrides: &'a [ListedOverride],
        candidates: &[(Box<str>, CandidateCounts)],
        origin: PolicyOrigin,
    ) -> Self {
        let limits = rules.policy().limits();
        let is_overridden = |limit: &Limit| {
            overrides.iter().any(|one| ModeOverride::covers(&one.name, &limit.name))
        };
        Self {
            generation: rules.generation(),
            file: origin.file.map(|file| file.display().to_string()),
            last_reload: origin.last_reload.map(|last| ReloadView {
                time: rfc3339(last.time_us),
                result: if last.error.is_none() { "ok" } else { "error" },
                error: last.error,
            }),
            limits: limits
                .iter()
                .enumerate()
                .filter(|(_, limit)| !limit.selector.is_candidate())
                .map(|(place, limit)| {
                    // A reload may have happened in between; then the mode in effect is good
                    // enough.
                    let configured = configured.get(place).copied().unwrap_or(limit.mode);
                    let mut view = LimitView::new(limit, configured, is_overridden(limit));
                    view.candidate = CandidateView::new(limit, candidates);
                    view
                })
                .collect(),
            lints: &[],
            overrides,
        }
    }
}

impl<'a> LimitView<'a> {
    fn new(limit: &'a Limit, configured: Mode, overridden: bool) -> Self {
        let tiers = limit.tiers.iter();
        Self {
            name: &limit.name,
            mode: limit.mode.word(),
            configured: configured.word(),
            overridden,
            key: KeyNamesView::of(limit),
            params: NumbersView::new(limit.params.as_ref()),
            tiers: tiers
                .map(|(tier, params)| (&**tier, NumbersView::new(params.as_ref())))
                .collect(),
            disclose: limit.disclose,
            penalty: limit.penalty.is_some(),
            candidate: None,
        }
    }
}

impl NumbersView {
    pub(super) fn new(params: Option<&LimitParams>) -> Self {
        Self {
            algorithm: params.map(LimitParams::algorithm),
            rate: params.map_or_else(|| "unlimited".to_owned(), rate),
            limit: params.map(Algorithm::capacity),
            time_zone: params.and_then(time_zone),
        }
    }
}

/// The time zone of calendar windows.
fn time_zone(params: &LimitParams) -> Option<&'static str> {
    match params {
        LimitParams::CalendarWindow(window) => window.zone().map(Zone::name),
        _ => None,
    }
}

/// A rate, as the file may write it.
fn rate(params: &LimitParams) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("w", 604_800_000_000),
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
    ];
    let (count, period_us) = (params.count(), params.period_us());
    if let LimitParams::CalendarWindow(window) = params {
        return format!("{count}/{}", window.unit().as_str());
    }
    if period_us == 0 {
        return count.to_string();
    }
    let unit = UNITS.iter().find(|(_, unit_us)| period_us.is_multiple_of(*unit_us));
    match unit.map(|(unit, unit_us)| (unit, period_us / unit_us)) {
        Some((unit, 1)) => format!("{count}/{unit}"),
        Some((unit, units)) => format!("{count}/{units}{unit}"),
        None => format!("{count}/{period_us}us"),
    }
}

/// The state of a key under one limit. Operators see all numbers, whatever the limit discloses to
/// clients.
#[derive(Serialize)]
pub(super) struct KeyView<'a> {
    name: &'a str,
    mode: &'static str,
    key: BTreeMap<&'a str, String>,
    /// The numbers for the key's tier.
    #[serde(flatten)]
    params: NumbersView,
    /// Units used; for a bucket, the units missing now.
    used: Option<u64>,
    remaining: Option<u64>,
    reset_after: Option<Box<RawValue>>,
    /// The state that survives a change of the numbers, by a reload or another tier.
    keeps: Option<KeptStateView>,
    blocked_until: Option<String>,
    #[serde(skip)]
    blocked_until_us: Option<u64>,
    blocked_for: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<LedgerView>,
}

/// The state of a key that survives a change of the limit's numbers, in the algorithm's own unit.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum KeptStateView {
    /// Units of windows, logs and slots.
    Units(u64),
    /// Buckets: the seconds until the bucket is full again.
    Owed(Box<RawValue>),
}

impl KeptStateView {
    fn new(inspected: &Inspected<'_>) -> Self {
        match inspected.params {
            LimitParams::TokenBucket(_) | LimitParams::Gcra(_) | LimitParams::LeakyBucket(_) => {
                Self::Owed(seconds(inspected.unblocked_outcome.reset_after_us))
            }
            _ => Self::Units(inspected.used),
        }
    }
}

/// The tier of a key, and its origin.
#[derive(Serialize)]
pub(super) struct TierView<'a> {
    name: Option<&'a str>,
    /// `header`, `cookie`, `query`, `jwt`, `attribute`, `map`, `file`, `redis`, `given`, `default`
    /// or `none`.
    source: &'static str,
    /// The attribute that names the tier, or whose value was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The requested tier, if no limit has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

impl<'a> TierView<'a> {
    /// Creates the view; `None` if the policy has no tiers.
    pub(super) fn new(rules: &'a Rules, facts: &Facts<'_>, settings: &Settings) -> Option<Self> {
        let tiers = &settings.tiers;
        if tiers.source.is_none() && tiers.default.is_none() {
            return None;
        }
        let found = rules.policy().effective_tier(facts);
        let (from, by) = match &tiers.source {
            None => ("none", None),
            Some(TierSource::Attribute(name)) => (attribute_source(name, settings), Some(&**name)),
            Some(TierSource::Map(map)) => ("map", Some(map.by())),
            Some(TierSource::File { .. }) => ("file", rules.tiers().map(|map| map.by())),
            Some(TierSource::Redis { by, .. }) => ("redis", Some(&**by)),
            Some(_) => ("attribute", None),
        };
        let source = match (found.is_known, found.name) {
            (true, _) => from,
            (false, Some(_)) => "default",
            (false, None) => "none",
        };
        let is_secret = by.is_some_and(|by| rules.http_policy().holds_secret(by));
        let named = found.named.map(|named| if is_secret { digest(&named) } else { named });
        let unknown = named.filter(|_| !found.is_known);
        Some(Self { name: found.name, source, by: by.map(str::to_owned), unknown })
    }
}

impl TierView<'_> {
    /// Shows that the operator named the tier, unless no limit has it.
    pub(super) fn show_named(&mut self) {
        if self.unknown.is_none() {
            (self.source, self.by) = ("given", None);
        }
    }
}

/// The part of a request that the attribute comes from.
fn attribute_source(name: &str, settings: &Settings) -> &'static str {
    let of_identity = settings.identity.iter().find(|(one, _)| **one == *name);
    match of_identity.map(|(_, source)| source) {
        Some(AttributeSource::Header(_)) => "header",
        Some(AttributeSource::Cookie(_)) => "cookie",
        Some(AttributeSource::Query(_)) => "query",
        Some(AttributeSource::Jwt(_)) => "jwt",
        _ => ["header", "cookie", "query", "jwt"]
            .into_iter()
            .find(|kind| name.split_once('.').is_some_and(|(first, _)| first == *kind))
            .unwrap_or("attribute"),
    }
}

/// The holders of units of a leased limit.
#[derive(Serialize)]
struct LedgerView {
    ledger: u64,
    quiet_for: Box<RawValue>,
    holdings: Vec<HoldingView>,
}

/// The units granted to and returned by one process.
#[derive(Serialize)]
struct HoldingView {
    process: Box<str>,
    number: u64,
    granted: u64,
    returned: u64,
    heard: String,
    this_node: bool,
}

impl LedgerView {
    fn new(report: &LedgerReport) -> Self {
        let holdings = report.holders.iter().map(|one| HoldingView {
            process: one.process.clone(),
            number: one.number,
            granted: one.granted,
            returned: one.returned,
            heard: rfc3339(one.last_seen_us),
            this_node: one.is_this_process,
        });
        let quiet_for = seconds(report.grace_us);
        Self { ledger: report.ledger, quiet_for, holdings: holdings.collect() }
    }
}

impl<'a> KeyView<'a> {
    pub(super) fn new(
        inspected: &Inspected<'a>,
        now_us: u64,
        value: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let (limit, outcome) = (inspected.row.limit, inspected.row.outcome);
        let until_us = inspected.blocked_until_us;
        let used = limit.key_used(|name| value(name).is_some());
        Self {
            params: NumbersView::new(Some(&inspected.params)),
            used: Some(inspected.used),
            remaining: Some(outcome.remaining),
            reset_after: Some(seconds(outcome.reset_after_us)),
            keeps: Some(KeptStateView::new(inspected)),
            blocked_until: until_us.map(rfc3339),
            blocked_until_us: until_us,
            blocked_for: until_us.map(|until_us| seconds(until_us.saturating_sub(now_us))),
            ledger: inspected.ledger.as_ref().map(LedgerView::new),
            ..Self::unlimited(limit, used, value)
        }
    }

    /// The view of a limit that is unlimited for the key with these attributes.
    pub(super) fn unlimited(
        limit: &'a Limit,
        names: &'a [Box<str>],
        value: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let key = names.iter().map(|name| (&**name, value(name).unwrap_or_default()));
        Self {
            name: &limit.name,
            mode: limit.mode.word(),
            key: key.collect(),
            params: NumbersView::new(None),
            used: None,
            remaining: None,
            reset_after: None,
            keeps: None,
            blocked_until: None,
            blocked_until_us: None,
            blocked_for: None,
            ledger: None,
        }
    }

    /// The end of the key's current block.
    pub(super) fn blocked_until_us(&self) -> Option<u64> {
        self.blocked_until_us
    }

    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    /// The values of the limit's key, in the form of keys. A missing value is empty.
    pub(super) fn key(&self) -> &BTreeMap<&'a str, String> {
        &self.key
    }
}

/// Exact decimal seconds.
pub(super) fn seconds(us: u64) -> Box<RawValue> {
    let mut text = Vec::new();
    encode::seconds(&mut text, us);
    let text = String::from_utf8(text).unwrap_or_default();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Exact decimal seconds; null if waiting does not help.
pub(super) fn optional_seconds(us: Option<u64>) -> Box<RawValue> {
    us.map_or_else(|| RawValue::NULL.to_owned(), seconds)
}

#[cfg(test)]
mod tests;
