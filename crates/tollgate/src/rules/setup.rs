//! The setup of a gate: limits, and the settings that apply to all of them.

use crate::Quota;
use crate::rules::INLINE;
use std::sync::Arc;
use tollgate_core::header::Profile;
use tollgate_policy::envoy::Configs;
use tollgate_policy::limit::{Counting, Limit, OnMissing, OnStoreFailure};
use tollgate_policy::match_spec::MatchSpec;
use tollgate_policy::policy::PolicyOptions;
use tollgate_policy::settings::TierSource;
use tollgate_policy::shed::ShedPolicy;
use tollgate_policy::{Compiled, HttpPolicy, TierMap};

/// The configuration of a [`Gate`](crate::engine::Gate): limits, and settings for all of them.
#[derive(Clone, Debug, Default)]
pub struct GateSetup {
    pub(crate) limits: Vec<(Limit, MatchSpec)>,
    pub(crate) options: PolicyOptions,
    pub(crate) tiers: Option<Arc<TierMap>>,
    pub(crate) buckets: bool,
    pub(crate) profiles: Arc<[Profile]>,
    pub(crate) envoy: Option<Arc<Configs>>,
    pub(crate) on_store_failure: OnStoreFailure,
    /// Whether inline limits count only admitted units.
    pub(crate) strict: bool,
    pub(crate) http_policy: Arc<HttpPolicy>,
    /// The seed of the shedders' random choices; random if absent.
    pub(crate) seed: Option<u64>,
}

impl GateSetup {
    /// Creates a setup of these limits, in this order.
    pub fn new(limits: Vec<(Limit, MatchSpec)>, options: PolicyOptions) -> Self {
        Self { limits, options, ..Self::default() }
    }

    /// One quota per value of an attribute, such as `ip` or `user`. Requests without the attribute
    /// share a count. Responses have the `RateLimit` headers of the current draft.
    ///
    /// ```
    /// use tollgate::engine::{Gate, GateSetup};
    /// use tollgate::{MemoryStore, Quota};
    ///
    /// let setup = GateSetup::of_quota("per-user", "user", Quota::per_minute(100));
    /// let gate = Gate::new(setup, MemoryStore::default())?;
    /// assert_eq!(&*gate.rules().policy().limits()[0].name, "per-user");
    /// # Ok::<(), tollgate::engine::policy::InvalidPolicy>(())
    /// ```
    pub fn of_quota(name: &str, attribute: &str, quota: Quota) -> Self {
        let limits = vec![(Self::quota_limit(name, attribute, quota), MatchSpec::default())];
        let profiles = Arc::new([Profile::Draft11]);
        Self { limits, profiles, ..Self::default() }
    }

    /// The limit of [`of_quota`](Self::of_quota).
    pub fn quota_limit(name: &str, attribute: &str, quota: Quota) -> Limit {
        let mut limit = Limit::new(name, &[attribute], Some(*quota.params()));
        limit.on_missing = OnMissing::Share;
        limit
    }

    /// The setup of a file. For a tier map in another file, call [`with_tiers`](Self::with_tiers).
    pub fn of(compiled: &Compiled) -> Self {
        let settings = &compiled.settings;
        let mut options = PolicyOptions::default();
        options.ipv6_prefix = settings.client_address.ipv6_prefix;
        options.default_tier = settings.tiers.default.as_deref().map(String::from);
        let mut tiers = None;
        match &settings.tiers.source {
            Some(TierSource::Attribute(name)) => options.tier_attribute = Some(name.to_string()),
            Some(TierSource::Redis { by, .. }) => options.attributes.push(by.to_string()),
            Some(TierSource::Map(map)) => tiers = Some(Arc::new(map.clone())),
            _ => {}
        }
        options.shed = compiled.shed.clone();
        let profiles: Arc<[Profile]> =
            settings.headers.iter().filter_map(|name| Profile::parse(name)).collect();
        let buckets = profiles.contains(&Profile::Discord);
        Self {
            limits: compiled.limits.clone(),
            options,
            tiers,
            buckets,
            profiles,
            http_policy: Arc::new(HttpPolicy::of(settings)),
            envoy: None,
            on_store_failure: settings.on_store_failure,
            strict: settings.envoy.strict,
            seed: None,
        }
    }

    /// Adds the limits of ratelimit files.
    pub fn with_envoy(mut self, configs: Configs) -> Self {
        self.envoy = Some(Arc::new(configs));
        self
    }

    /// All limits: of the policy file, of ratelimit files, of shedders, and candidates.
    pub(crate) fn all_limits(&self) -> Vec<(Limit, MatchSpec)> {
        let rules = self.envoy.iter().flat_map(|configs| configs.rules());
        let addressed = rules.filter_map(|rule| Some((rule.limit.clone()?, MatchSpec::default())));
        let shedders = self.options.shed.iter().flat_map(ShedPolicy::limits);
        let shedders = shedders.map(|limit| (limit, MatchSpec::default()));
        let file = self.limits.iter().enumerate();
        let candidates = file.filter_map(|(index, (limit, _))| limit.candidate_limit(index));
        let candidates = candidates.map(|limit| (limit, MatchSpec::default()));
        self.limits.iter().cloned().chain(addressed).chain(shedders).chain(candidates).collect()
    }

    /// The index in [`all_limits`](Self::all_limits) of each rule of the ratelimit files.
    pub(crate) fn descriptor_limits(&self) -> Box<[Option<usize>]> {
        let mut next = self.limits.len()..;
        let rules = self.envoy.iter().flat_map(|configs| configs.rules());
        rules.map(|rule| rule.limit.as_ref().and_then(|_| next.next())).collect()
    }

    /// The inline limits, without parameters.
    pub(crate) fn inline_limits(&self) -> [Limit; INLINE.len()] {
        let mut limits = INLINE.map(|name| Limit::new(name, &[], None));
        limits.iter_mut().for_each(|limit| limit.on_store_failure = self.on_store_failure);
        limits[0].counting = if self.strict { Counting::Admitted } else { Counting::Requested };
        limits
    }

    /// Sets the map for tier lookups.
    pub fn with_tiers(mut self, tiers: TierMap) -> Self {
        self.tiers = Some(Arc::new(tiers));
        self
    }

    /// Makes the random choices of shedders repeatable, for simulations.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Computes the [`bucket`](crate::engine::Row::bucket) of every row, at the cost of a hash
    /// each. Header profiles that show buckets enable this themselves.
    pub fn with_buckets(mut self) -> Self {
        self.buckets = true;
        self
    }
}
