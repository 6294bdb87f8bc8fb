//! What a gate is made of, and reloaded with.

use crate::rules::INLINE;
use std::sync::Arc;
use tollgate_core::header::Profile;
use tollgate_policy::envoy::Configs;
use tollgate_policy::limit::{Counting, Limit, OnStoreFailure};
use tollgate_policy::match_spec::MatchSpec;
use tollgate_policy::policy::PolicyOptions;
use tollgate_policy::settings::TierSource;
use tollgate_policy::{Compiled, HttpPolicy, TierMap};

/// Limits and what holds for all of them, as configured.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub(crate) limits: Vec<(Limit, MatchSpec)>,
    pub(crate) options: PolicyOptions,
    pub(crate) tiers: Option<Arc<TierMap>>,
    pub(crate) buckets: bool,
    pub(crate) profiles: Arc<[Profile]>,
    pub(crate) envoy: Option<Arc<Configs>>,
    pub(crate) on_store_failure: OnStoreFailure,
    /// Whether limits that requests bring count only what they admit.
    pub(crate) strict: bool,
    pub(crate) http_policy: Arc<HttpPolicy>,
}

impl Setup {
    /// These limits, in this order.
    pub fn new(limits: Vec<(Limit, MatchSpec)>, options: PolicyOptions) -> Self {
        Self { limits, options, ..Self::default() }
    }

    /// What a file says. Tiers that another file maps come [with it](Self::with_tiers).
    pub fn of(compiled: &Compiled) -> Self {
        let settings = &compiled.settings;
        let mut options = PolicyOptions::default();
        options.ipv6_prefix = settings.client_address.ipv6_prefix;
        options.default_tier = settings.tiers.default.as_deref().map(String::from);
        if let Some(TierSource::Attribute(name)) = &settings.tiers.source {
            options.tier_attribute = Some(name.to_string());
        }
        if let Some(TierSource::Redis { by, .. }) = &settings.tiers.source {
            options.attributes.push(by.to_string());
        }
        let profiles: Arc<[Profile]> =
            settings.headers.iter().filter_map(|name| Profile::parse(name)).collect();
        let buckets = profiles.contains(&Profile::Discord);
        let (limits, web) = (compiled.limits.clone(), Arc::new(HttpPolicy::of(settings)));
        Self {
            limits,
            options,
            tiers: match &settings.tiers.source {
                Some(TierSource::Map(map)) => Some(Arc::new(map.clone())),
                _ => None,
            },
            buckets,
            profiles,
            http_policy: web,
            envoy: None,
            on_store_failure: settings.on_store_failure,
            strict: settings.envoy.strict,
        }
    }

    /// Serves the limits of ratelimit files too.
    pub fn with_envoy(mut self, configs: Configs) -> Self {
        self.envoy = Some(Arc::new(configs));
        self
    }

    /// Those of the file, and behind them those of ratelimit files.
    pub(crate) fn all_limits(&self) -> Vec<(Limit, MatchSpec)> {
        let rules = self.envoy.iter().flat_map(|configs| configs.rules());
        let addressed = rules.filter_map(|rule| Some((rule.limit.clone()?, MatchSpec::default())));
        self.limits.iter().cloned().chain(addressed).collect()
    }

    /// Where they are, by the places of their rules.
    pub(crate) fn descriptor_limits(&self) -> Box<[Option<usize>]> {
        let mut next = self.limits.len()..;
        let rules = self.envoy.iter().flat_map(|configs| configs.rules());
        rules.map(|rule| rule.limit.as_ref().and_then(|_| next.next())).collect()
    }

    /// The limits that come with requests, without their numbers.
    pub(crate) fn inline_limits(&self) -> [Limit; INLINE.len()] {
        let mut limits = INLINE.map(|name| Limit::new(name, &[], None));
        limits.iter_mut().for_each(|limit| limit.on_store_failure = self.on_store_failure);
        limits[0].counting = if self.strict { Counting::Admitted } else { Counting::Requested };
        limits
    }

    /// Looks tiers up in `tiers`.
    pub fn with_tiers(mut self, tiers: TierMap) -> Self {
        self.tiers = Some(Arc::new(tiers));
        self
    }

    /// Reads requests over HTTP as `web` says.
    pub fn with_http_policy(mut self, web: HttpPolicy) -> Self {
        self.http_policy = Arc::new(web);
        self
    }

    /// Tells clients about their quota in the fields of these profiles.
    pub fn with_profiles(mut self, profiles: &[Profile]) -> Self {
        self.buckets |= profiles.contains(&Profile::Discord);
        self.profiles = profiles.into();
        self
    }

    /// Has every row name its [`bucket`](crate::Row::bucket), for the header profiles that show it;
    /// it costs a hash for each.
    pub fn with_buckets(mut self) -> Self {
        self.buckets = true;
        self
    }
}
