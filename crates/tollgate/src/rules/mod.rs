//! The rules in force: compiled policy, its setup, counters, and the charge of each limit.

mod candidate;
mod counters;
mod mode_override;
mod setup;
mod shed;

pub use candidate::CandidateCounts;
pub(crate) use candidate::{CandidateCounters, CandidateOutcome};
pub(crate) use counters::Counters;
pub use counters::{Counts, thread_number};
pub use mode_override::ModeOverride;
pub use setup::GateSetup;
pub use shed::ShedCounts;
pub(crate) use shed::{ClassCounters, InFlightCount, ShedEntry, ShedRules, ShedState};

use crate::engine::{Row, Source};
use crate::gate::failure_policy;
use crate::reservation::depends_on_answer;
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_core::algorithm::{FixedWindow, Gcra};
use tollgate_core::header::Profile;
use tollgate_core::{Algorithm, LimitParams, Outcome, Rate};
use tollgate_policy::envoy::Configs;
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_policy::limit::{Consistency, Counting, Limit, Mode, OnStoreFailure, Selector};
use tollgate_policy::match_spec::MatchSpec;
use tollgate_policy::policy::{InvalidPolicy, Policy, Selected, TierParams};
use tollgate_policy::{HttpPolicy, TierMap};
use tollgate_store::{Answer, Charge, GracePolicy, LeaseSettings, LeaseStore, ParamsId};

/// A compiled policy, registered with the store. It is immutable: a reload builds another one.
#[derive(Debug)]
pub struct Rules {
    policy: Policy,
    /// The limits again, shared with reservations that outlive these rules.
    limits: Box<[Arc<Limit>]>,
    counters: Box<[Arc<Counters>]>,
    /// Counters of candidates, by the index of the limit; empty if no limit has a candidate.
    candidate_counters: Box<[Option<Arc<CandidateCounters>>]>,
    /// The store's ids of the policy's parameters, by [`Selected::params_index`].
    params_ids: Box<[ParamsId]>,
    /// Whether the store leases the limit with these parameters.
    leased: Box<[bool]>,
    /// The parameters that this node enforces by itself while the store fails.
    local_params: Box<[Option<LimitParams>]>,
    tiers: Option<Arc<TierMap>>,
    /// Whether the charge of any limit depends on the response.
    depends_on_answers: bool,
    /// Whether rows have their bucket.
    buckets: bool,
    profiles: Arc<[Profile]>,
    http_policy: Arc<HttpPolicy>,
    /// The parameters that refuse everything, for `on_missing: refuse` with a missing attribute.
    refuse_all: LimitParams,
    store_source: Source,
    generation: u64,
    /// Inline limits without parameters, in the order of [`INLINE`].
    inline: [Limit; INLINE.len()],
    envoy: Option<Arc<Configs>>,
    /// The index in the policy of each rule of the ratelimit files; `None` is unlimited.
    descriptor_limits: Box<[Option<usize>]>,
    /// The shedders; `None` if the policy sheds nothing.
    shed: Option<Box<ShedRules>>,
}

/// The names of inline limits in metrics: Envoy's overrides, and `CL.THROTTLE`.
pub(crate) const INLINE: [&str; 2] = ["override", "CL.THROTTLE"];

/// The largest debt of a limit: the count of the largest limit.
const UNITS_MAX: u64 = u32::MAX as u64;

/// Values by the name of a limit.
pub(crate) type ByName<T> = BTreeMap<Box<str>, T>;

impl Rules {
    pub(crate) fn new(
        setup: &GateSetup,
        overrides: &[ModeOverride],
        counters: &mut ByName<Arc<Counters>>,
        candidates: &mut ByName<Arc<CandidateCounters>>,
        shed: &mut ShedState,
        store: &impl LeaseStore,
        generation: u64,
    ) -> Result<Self, InvalidPolicy> {
        let mut limits = setup.all_limits();
        for (limit, _) in &mut limits {
            if let Some(deciding) = ModeOverride::deciding(overrides, &limit.name) {
                limit.mode = deciding.mode;
            }
        }
        follow_modes(&mut limits);
        let mut options = setup.options.clone();
        options.attributes.extend(setup.tiers.iter().map(|tiers| tiers.by().to_owned()));
        let policy = Policy::new(limits, options)?;
        let variants = policy.tier_params().iter();
        let register = |variant: &TierParams| {
            let settings = lease_settings(&policy.limits()[variant.limit]);
            match settings.and_then(|settings| store.register_leased(&variant.params, &settings)) {
                Some(params_id) => (params_id, true),
                None => (store.register_params(&variant.params), false),
            }
        };
        let (params_ids, leased): (Vec<_>, Vec<_>) = variants.clone().map(register).unzip();
        Ok(Self {
            params_ids: params_ids.into(),
            leased: leased.into(),
            local_params: variants
                .map(|variant| {
                    local_params(policy.limits()[variant.limit].on_store_failure, &variant.params)
                })
                .collect(),
            limits: policy.limits().iter().cloned().map(Arc::new).collect(),
            counters: policy
                .limits()
                .iter()
                .map(|limit| match limit.selector.is_hidden() {
                    // Shedders have counters by class, and candidates those of their limit.
                    true => Arc::default(),
                    false => Arc::clone(counters.entry(limit.name.clone()).or_default()),
                })
                .collect(),
            candidate_counters: candidate_counters(&policy, candidates),
            depends_on_answers: policy
                .tier_params()
                .iter()
                .any(|variant| depends_on_answer(&policy.limits()[variant.limit], &variant.params)),
            tiers: setup.tiers.clone(),
            buckets: setup.buckets,
            profiles: setup.profiles.clone(),
            http_policy: setup.http_policy.clone(),
            refuse_all: LimitParams::FixedWindow(FixedWindow::new(Rate::NOTHING)),
            store_source: if store.is_shared() { Source::Store } else { Source::Memory },
            generation,
            inline: setup.inline_limits(),
            descriptor_limits: setup.descriptor_limits(),
            envoy: setup.envoy.clone(),
            shed: setup
                .options
                .shed
                .as_ref()
                .map(|it| shed.rules((it, setup.seed), &policy, store).into()),
            policy,
        })
    }

    /// The compiled policy, with the modes that are in effect.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The header profiles of the policy file.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The HTTP rules of the policy file: how requests are read and refused.
    pub fn http_policy(&self) -> &HttpPolicy {
        &self.http_policy
    }

    /// The generation, which grows with every reload. Verdicts of one generation come from the same
    /// rules.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Creates empty facts for one request, in a reused buffer.
    pub fn facts(&self, buffer: FactsBuffer) -> Facts<'_> {
        self.policy.facts(buffer)
    }

    /// Sets the tier of the client, if the tier map has it.
    #[inline]
    pub fn identify<'r>(&'r self, facts: &mut Facts<'r>) {
        if let Some(tiers) = &self.tiers
            && let Some(tier) = facts.get(tiers.by()).and_then(|client| tiers.tier(&client))
        {
            facts.set_tier(tier);
        }
    }

    /// The map for tier lookups, inline or from a file.
    pub fn tiers(&self) -> Option<&TierMap> {
        self.tiers.as_deref()
    }

    /// The ratelimit files in force.
    pub fn envoy(&self) -> Option<&Configs> {
        self.envoy.as_deref()
    }

    /// The limit of Envoy's overrides.
    pub(crate) fn envoy_override(&self) -> &Limit {
        &self.inline[0]
    }

    /// The limit of `CL.THROTTLE`.
    pub(crate) fn throttle(&self) -> &Limit {
        &self.inline[1]
    }

    /// The index of an inline limit in [`INLINE`].
    #[inline]
    pub(crate) fn inline_index(&self, limit: &Limit) -> usize {
        usize::from(std::ptr::eq(limit, self.throttle()))
    }

    /// Whether the policy sheds load, so that a request may wait in a queue.
    pub fn sheds(&self) -> bool {
        self.shed.is_some()
    }

    /// The shedders, if the policy has any.
    #[inline]
    pub(crate) fn shed(&self) -> Option<&ShedRules> {
        self.shed.as_deref()
    }

    /// The index in the policy of a rule of the ratelimit files; `None` if it is unlimited.
    pub(crate) fn descriptor_limit(&self, rule: usize) -> Option<usize> {
        *self.descriptor_limits.get(rule)?
    }

    /// Whether the charge of any limit depends on the response.
    pub(crate) fn depends_on_answers(&self) -> bool {
        self.depends_on_answers
    }

    /// The source of the store's usual decisions.
    pub(crate) fn store_source(&self) -> Source {
        self.store_source
    }

    pub(crate) fn limit(&self, index: usize) -> &Arc<Limit> {
        &self.limits[index]
    }

    /// The counters of the limit at this index; an inline limit has none here.
    pub(crate) fn counters(&self, index: usize) -> Option<&Counters> {
        self.counters.get(index).map(|counters| &**counters)
    }

    /// The counters of the candidate of the limit at this index.
    pub(crate) fn candidate_counters(&self, index: usize) -> Option<&CandidateCounters> {
        self.candidate_counters.get(index)?.as_deref()
    }

    /// The name of the tier of a selected limit's request.
    pub(crate) fn tier_of(&self, selected: &Selected<'_>) -> Option<&Arc<str>> {
        self.policy.tier_names().get(selected.tier?.index())
    }

    pub(crate) fn params_id(&self, params_index: usize) -> ParamsId {
        self.params_ids.get(params_index).copied().unwrap_or_default()
    }

    /// Whether the store leases the limit. A lease remembers refusals itself.
    pub(crate) fn is_leased(&self, selected: &Selected<'_>) -> bool {
        !selected.missing && self.leased.get(selected.params_index).copied().unwrap_or(false)
    }

    /// The parameters that this node enforces by itself while the store fails, and the id of their
    /// state; the limit's own unless `local` applies.
    pub(crate) fn local(&self, selected: &Selected<'_>) -> (u64, LimitParams) {
        let on_store_failure = selected.limit.on_store_failure;
        let params = match (self.local_params.get(selected.params_index), on_store_failure) {
            (Some(known), _) => *known,
            (None, OnStoreFailure::Local { nodes }) if self.inline_index(selected.limit) == 1 => {
                Some(with_longer_period(selected.params, nodes))
            }
            // The parameters of an inline limit are not known before its request.
            (None, on_store_failure) => local_params(on_store_failure, selected.params),
        };
        let params = params.unwrap_or(*selected.params);
        let period_us = params.period_us();
        // State belongs to a period, and a reload may give a local rate another one.
        let id = if period_us == selected.params.period_us() {
            selected.id
        } else {
            stable_hash(selected.id, &period_us.to_le_bytes())
        };
        (id, params)
    }

    /// The charge of the limit, by its `counting`: admitted units, requested units or debts.
    #[inline]
    pub(crate) fn charge<'a>(&'a self, selected: &Selected<'a>) -> Charge<'a> {
        let charge = self.plain_charge(selected);
        let (units, enforced) = (charge.cost.min(UNITS_MAX), charge.mode.is_enforced());
        let owing = tollgate_store::ChargeMode::Owe { units, enforced };
        match selected.limit.counting {
            _ if selected.missing => charge,
            Counting::Admitted => charge,
            Counting::Requested => Charge { mode: owing, ..charge },
            Counting::Debt => Charge { cost: charge.cost.min(1), mode: owing, ..charge },
        }
    }

    /// The charge of the limit if it counted only admitted units.
    #[inline]
    pub(crate) fn plain_charge<'a>(&'a self, selected: &Selected<'a>) -> Charge<'a> {
        let limit = selected.limit;
        let charge = Charge {
            limit: selected.id,
            key: selected.key,
            params: selected.params,
            params_id: self.params_id(selected.params_index),
            cost: selected.cost,
            mode: store_mode(limit),
            penalty: limit.penalty.as_ref(),
        };
        if !selected.missing {
            return charge;
        }
        // A window of zero units keeps no state, so a penalty would have no key to block.
        let (params, params_id) = (&self.refuse_all, ParamsId::default());
        Charge { params, params_id, penalty: None, ..charge }
    }

    /// The source of the store's answer for a limit.
    #[inline]
    pub(crate) fn source(&self, selected: &Selected<'_>, answer: &Answer) -> Source {
        Source::of(selected.limit, answer, self.store_source, || failure_policy(selected))
    }

    #[inline]
    pub(crate) fn row_from(
        &self,
        selected: &Selected<'_>,
        answer: &Answer,
        source: Source,
    ) -> Row<'_> {
        let limit = match self.policy.limits().get(selected.index) {
            Some(limit) => limit,
            None => &self.inline[self.inline_index(selected.limit)],
        };
        let bucket = if self.buckets { stable_hash(selected.id, selected.key) } else { 0 };
        let outcome = outcome(selected, answer);
        let mut row = Row::new(limit, selected.params, outcome, source, bucket);
        row.unverified = selected.unverified;
        row.blocked = answer.blocked;
        row
    }
}

/// Switches a candidate off with its limit, regardless of overrides of its own name.
fn follow_modes(limits: &mut [(Limit, MatchSpec)]) {
    for at in 0..limits.len() {
        if let Selector::Candidate(base) = limits[at].0.selector {
            let is_off = limits.get(base).is_none_or(|(base, _)| base.mode == Mode::Off);
            limits[at].0.mode = if is_off { Mode::Off } else { Mode::Shadow };
        }
    }
}

fn candidate_counters(
    policy: &Policy,
    known: &mut ByName<Arc<CandidateCounters>>,
) -> Box<[Option<Arc<CandidateCounters>>]> {
    if !policy.has_candidates() {
        return Box::default();
    }
    let mut counters = |limit: &Limit| {
        limit.candidate.as_ref()?;
        Some(Arc::clone(known.entry(limit.name.clone()).or_default()))
    };
    policy.limits().iter().map(&mut counters).collect()
}

/// The outcome to show. A limit with a missing key shows its own capacity.
#[inline]
pub(crate) fn outcome(selected: &Selected<'_>, answer: &Answer) -> Outcome {
    let mut outcome = answer.outcome;
    if selected.missing {
        (outcome.limit, outcome.reset_after_us) = (selected.params.capacity(), 0);
    }
    outcome
}

/// The store's mode for a limit. A limit that is off is selected only for operators.
pub(crate) fn store_mode(limit: &Limit) -> tollgate_store::ChargeMode {
    match limit.mode {
        Mode::Shadow => tollgate_store::ChargeMode::Shadow,
        Mode::Enforce | Mode::Off => tollgate_store::ChargeMode::Enforce,
    }
}

/// The lease settings of a limit that can be leased. Counted refusals, shadow refusals and debts
/// must reach the store, so limits with them cannot be leased.
fn lease_settings(limit: &Limit) -> Option<LeaseSettings> {
    let Consistency::Leased { lifetime_us, min_limit, quiet_us: grace_us } = limit.consistency
    else {
        return None;
    };
    let plain = limit.mode == Mode::Enforce
        && limit.penalty.is_none()
        && limit.candidate.is_none()
        && limit.counting == Counting::Admitted;
    let grace_policy = match limit.on_store_failure {
        // The store answers, so it decides: this is not a failure.
        OnStoreFailure::Open | OnStoreFailure::Local { .. } | OnStoreFailure::LocalRate(_) => {
            GracePolicy::Decide
        }
        OnStoreFailure::Closed => GracePolicy::Refuse,
    };
    plain.then_some(LeaseSettings { lifetime_us, min_limit, grace_us, grace_policy })
}

/// The parameters that a node enforces by itself while the store fails.
fn local_params(policy: OnStoreFailure, params: &LimitParams) -> Option<LimitParams> {
    match policy {
        OnStoreFailure::Local { nodes } => Some(params.share(nodes)),
        OnStoreFailure::LocalRate(rate) => Some(rate.params(params)),
        OnStoreFailure::Open | OnStoreFailure::Closed => None,
    }
}

/// This node's share of a caller's parameters. The period grows instead of the count shrinking:
/// callers' counts are small, and half of one per minute is one per two minutes.
fn with_longer_period(params: &LimitParams, nodes: u32) -> LimitParams {
    let slower = |gcra: &Gcra| {
        let period_us = gcra.bucket().period_us().saturating_mul(nodes.into());
        let rate = Rate::try_new(gcra.bucket().count().into(), period_us).ok()?;
        Gcra::try_new(rate, Some(gcra.capacity() / u64::from(nodes.max(1)))).ok()
    };
    match params {
        LimitParams::Gcra(gcra) => slower(gcra).map(LimitParams::Gcra),
        _ => None,
    }
    .unwrap_or_else(|| params.share(nodes))
}

/// FNV-1a of limit and key: equal on every node and after every restart.
fn stable_hash(limit: u64, key: &[u8]) -> u64 {
    let bytes = limit.to_le_bytes().into_iter().chain(key.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
