//! The rules in force: compiled policy, its setup, counters, and the charge of each limit.

mod counters;
mod setup;

pub(crate) use counters::Counters;
pub use counters::Counts;
pub use setup::Setup;

use crate::reservation::depends_on_answer;
use crate::{Row, Source};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_core::algorithm::{FixedWindow, Gcra};
use tollgate_core::header::Profile;
use tollgate_core::{Algorithm, LimitParams, Outcome, Rate};
use tollgate_policy::envoy::Configs;
use tollgate_policy::facts::{Facts, FactsBuffer};
use tollgate_policy::limit::{self, Consistency, Counting, Limit, Mode, OnStoreFailure};
use tollgate_policy::policy::{InvalidPolicy, Policy, Selected, TierParams};
use tollgate_policy::{HttpPolicy, TierMap};
use tollgate_store::{Answer, Charge, GracePolicy, LeaseSettings, LeaseStore, ParamsId};

/// A compiled policy with what the store calls its numbers. It never changes; a reload makes
/// another one.
#[derive(Debug)]
pub struct Rules {
    policy: Policy,
    /// The limits again, for those who outlive these rules.
    limits: Box<[Arc<Limit>]>,
    counters: Box<[Arc<Counters>]>,
    /// The store's short names for the policy's numbers, by [`Selected::numbers_index`].
    params_ids: Box<[ParamsId]>,
    /// Whether the store leases the limit with those numbers.
    leased: Box<[bool]>,
    /// This node's part of the same numbers, where a limit falls back on it.
    shares: Box<[Option<LimitParams>]>,
    tiers: Option<Arc<TierMap>>,
    /// Whether any of the limits depends on what requests are answered with.
    depends_on_answers: bool,
    /// Whether rows name their bucket.
    buckets: bool,
    profiles: Arc<[Profile]>,
    http_policy: Arc<HttpPolicy>,
    /// What a limit with `on_missing: refuse` is decided by when the attribute is missing.
    refuse_all: LimitParams,
    store_source: Source,
    generation: u64,
    /// Limits that come with requests, without their numbers, by their place in [`INLINE`].
    inline: [Limit; INLINE.len()],
    envoy: Option<Arc<Configs>>,
    /// The places in the policy of the limits of ratelimit files, by those of their rules.
    descriptor_limits: Box<[Option<usize>]>,
}

/// The names of inline limits in metrics: those of Envoy's overrides, and of `CL.THROTTLE`.
pub(crate) const INLINE: [&str; 2] = ["override", "CL.THROTTLE"];

/// What a limit can be charged at most, whoever refuses: as much as the largest there is.
const UNITS_MAX: u64 = u32::MAX as u64;

/// What the limits are called and counted by, whatever becomes of them.
pub(crate) type ByName<T> = BTreeMap<Box<str>, T>;

impl Rules {
    pub(crate) fn new(
        setup: &Setup,
        modes: &ByName<Mode>,
        counters: &mut ByName<Arc<Counters>>,
        store: &impl LeaseStore,
        generation: u64,
    ) -> Result<Self, InvalidPolicy> {
        let mut limits = setup.all_limits();
        for (limit, _) in &mut limits {
            if let Some(mode) = modes.get(&limit.name) {
                limit.mode = *mode;
            }
        }
        let mut options = setup.options.clone();
        options.attributes.extend(setup.tiers.iter().map(|tiers| tiers.by().to_owned()));
        let policy = Policy::new(limits, options)?;
        let variants = policy.tier_params().iter();
        let share = |limit: usize| match policy.limits()[limit].on_store_failure {
            OnStoreFailure::Local { nodes } => Some(nodes),
            OnStoreFailure::Open | OnStoreFailure::Closed => None,
        };
        let enroll = |variant: &TierParams| {
            let leasing = leasing(&policy.limits()[variant.limit]);
            let leased = leasing.and_then(|terms| store.register_leased(&variant.params, &terms));
            match leased {
                Some(params_id) => (params_id, true),
                None => (store.register_params(&variant.params), false),
            }
        };
        let (tickets, leased): (Vec<_>, Vec<_>) = variants.clone().map(enroll).unzip();
        Ok(Self {
            params_ids: tickets.into(),
            leased: leased.into(),
            shares: variants
                .map(|variant| share(variant.limit).map(|nodes| variant.params.share(nodes)))
                .collect(),
            limits: policy.limits().iter().cloned().map(Arc::new).collect(),
            counters: policy
                .limits()
                .iter()
                .map(|limit| Arc::clone(counters.entry(limit.name.clone()).or_default()))
                .collect(),
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
            policy,
        })
    }

    /// The compiled policy, with the modes that are in effect.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The header profiles that the file with these limits asks for, so that an answer is by one
    /// file in all its parts.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// How the file with these limits has requests over HTTP read and refused.
    pub fn http_policy(&self) -> &HttpPolicy {
        &self.http_policy
    }

    /// Counts up with every change, so that two answers can be told to be by the same rules.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Empty facts for one request, in the memory of earlier ones.
    pub fn facts(&self, buffer: FactsBuffer) -> Facts<'_> {
        self.policy.facts(buffer)
    }

    /// Adds what these rules know about whoever the facts name: the tier, where a file maps it.
    pub fn identify<'r>(&'r self, facts: &mut Facts<'r>) {
        if let Some(tiers) = &self.tiers
            && let Some(tier) = facts.get(tiers.by()).and_then(|who: Cow<'_, str>| tiers.tier(&who))
        {
            facts.set_tier(tier);
        }
    }

    /// The map that tiers are looked up in, inline or from a file.
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

    /// The place of an inline limit in [`INLINE`].
    #[inline]
    pub(crate) fn inline_index(&self, limit: &Limit) -> usize {
        usize::from(std::ptr::eq(limit, self.throttle()))
    }

    /// Where the policy has the limit of a rule of the ratelimit files; `None` where it is
    /// unlimited.
    pub(crate) fn descriptor_limit(&self, rule: usize) -> Option<usize> {
        *self.descriptor_limits.get(rule)?
    }

    /// Whether any of the limits depends on what requests are answered with.
    pub(crate) fn depends_on_answers(&self) -> bool {
        self.depends_on_answers
    }

    /// Where decisions of the store come from.
    pub(crate) fn store_source(&self) -> Source {
        self.store_source
    }

    pub(crate) fn limit(&self, index: usize) -> &Arc<Limit> {
        &self.limits[index]
    }

    /// The counters of the limit at this place; an inline limit has none here.
    pub(crate) fn counters(&self, index: usize) -> Option<&Counters> {
        self.counters.get(index).map(|counters| &**counters)
    }

    pub(crate) fn params_id(&self, numbers_index: usize) -> ParamsId {
        self.params_ids.get(numbers_index).copied().unwrap_or_default()
    }

    /// Whether the store leases the limit under these numbers. Then it knows for itself when
    /// nothing is left.
    pub(crate) fn is_leased(&self, selected: &Selected<'_>) -> bool {
        !selected.missing && self.leased.get(selected.params_index).copied().unwrap_or(false)
    }

    /// This node's part of the numbers; all of them for a limit that has no use for it.
    pub(crate) fn share(&self, selected: &Selected<'_>) -> LimitParams {
        match (self.shares.get(selected.params_index), selected.limit.on_store_failure) {
            (Some(Some(share)), _) => *share,
            (None, OnStoreFailure::Local { nodes }) if self.inline_index(selected.limit) == 1 => {
                with_longer_period(selected.params, nodes)
            }
            // Numbers that came with a request are not known before.
            (None, OnStoreFailure::Local { nodes }) => selected.params.share(nodes),
            _ => *selected.params,
        }
    }

    /// What the limit is charged, by what it counts.
    #[inline]
    pub(crate) fn charge<'a>(&'a self, selected: &Selected<'a>) -> Charge<'a> {
        let charge = self.plain_charge(selected);
        let (units, enforced) = (charge.cost.min(UNITS_MAX), charge.mode.is_enforced());
        let owing = tollgate_store::Mode::Owe { units, enforced };
        match selected.limit.counting {
            _ if selected.missing => charge,
            Counting::Admitted => charge,
            Counting::Requested => Charge { mode: owing, ..charge },
            Counting::Debt => Charge { cost: charge.cost.min(1), mode: owing, ..charge },
        }
    }

    /// What the limit would be charged if it counted only what it admits.
    #[inline]
    pub(crate) fn plain_charge<'a>(&'a self, selected: &Selected<'a>) -> Charge<'a> {
        let limit = selected.limit;
        let charge = Charge {
            limit: selected.id,
            key: selected.key,
            params: selected.params,
            params_id: self.params_id(selected.params_index),
            cost: selected.cost,
            mode: match limit.mode {
                limit::Mode::Shadow => tollgate_store::Mode::Shadow,
                limit::Mode::Enforce | limit::Mode::Off => tollgate_store::Mode::Enforce,
            },
            penalty: limit.penalty.as_ref(),
        };
        match selected.missing {
            // A window of nothing refuses without keeping any state, and a penalty would have no
            // key to fall on.
            true => Charge {
                params: &self.refuse_all,
                params_id: ParamsId::default(),
                penalty: None,
                ..charge
            },
            false => charge,
        }
    }

    /// Where the store's answer for a limit comes from.
    #[inline]
    pub(crate) fn source(&self, selected: &Selected<'_>, answer: &Answer) -> Source {
        Source::of(selected.limit, answer, self.store_source)
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
        let bucket = match self.buckets {
            true => stable_hash(selected.id, selected.key),
            false => 0,
        };
        let outcome = outcome(selected, answer);
        let mut row = Row::new(limit, selected.params, outcome, source, bucket);
        row.unverified = selected.unverified;
        row.blocked = answer.blocked;
        row
    }
}

/// What is shown of a limit's answer: of one that misses its key, its own capacity.
#[inline]
pub(crate) fn outcome(selected: &Selected<'_>, answer: &Answer) -> Outcome {
    let mut outcome = answer.outcome;
    if selected.missing {
        (outcome.limit, outcome.reset_after_us) = (selected.params.capacity(), 0);
    }
    outcome
}

/// How the limit is leased, if it can be: refusals that are counted or only reported, and units
/// that are owed, have to reach the store.
fn leasing(limit: &Limit) -> Option<LeaseSettings> {
    let Consistency::Leased { lifetime_us, min_limit, quiet_us } = limit.consistency else {
        return None;
    };
    let plain = limit.mode == Mode::Enforce
        && limit.penalty.is_none()
        && limit.counting == Counting::Admitted;
    let grace_policy = match limit.on_store_failure {
        OnStoreFailure::Open => GracePolicy::Admit,
        OnStoreFailure::Closed => GracePolicy::Refuse,
        // Its share is decided here, with all other limits of the request.
        OnStoreFailure::Local { .. } => GracePolicy::Fail,
    };
    plain.then_some(LeaseSettings { lifetime_us, min_limit, quiet_us, grace_policy })
}

/// This node's part of a caller's numbers. A pace is divided by making its period longer, since
/// callers' counts are small: half of one in a minute is one in two.
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

/// FNV-1a over limit and key: the same on every node and after every restart.
fn stable_hash(limit: u64, key: &[u8]) -> u64 {
    let bytes = limit.to_le_bytes().into_iter().chain(key.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
