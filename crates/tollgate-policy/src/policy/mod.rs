//! The compiled policy: selects limits, keys and costs for the facts of a request.
//!
//! ```
//! use tollgate_core::{LimitParams, Rate, algorithm::Gcra};
//! use tollgate_policy::limit::Limit;
//! use tollgate_policy::match_spec::{Condition, MatchSpec};
//! use tollgate_policy::policy::{Policy, PolicyOptions, Selection};
//!
//! let numbers = LimitParams::Gcra(Gcra::try_new(Rate::try_new(100, 60_000_000)?, None)?);
//! let limit = Limit::new("per-user", &["user"], Some(numbers));
//! let api = Condition { attribute: "path".into(), patterns: vec!["/api/**".into()] };
//! let spec = MatchSpec { conditions: vec![api], not: vec![] };
//! let policy = Policy::new(vec![(limit, spec)], PolicyOptions::default())?;
//!
//! let mut facts = policy.facts(Default::default());
//! facts.set("user", "42")?;
//! facts.set("path", "/api/./x?page=2")?;
//! let mut selection = Selection::default();
//! policy.select(&facts, 1, &mut selection);
//!
//! let charge = policy.selected(&selection).next().ok_or("nothing applies")?;
//! assert_eq!(&*charge.limit.name, "per-user");
//! assert_eq!((charge.index, charge.cost, charge.missing), (0, 1, false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidate;
mod class;
mod explain;
mod invalid;
mod key_bytes;
mod select;
mod selection;
#[cfg(test)]
mod tests;
mod unverified;

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tollgate_core::LimitParams;

pub use explain::{Applicability, LimitApplicability};
pub use invalid::InvalidPolicy;
pub(crate) use key_bytes::push_value;
pub use selection::{EffectiveTier, Selected, Selection};

use crate::facts::{AttributeId, Facts, FactsBuffer, Names};
use crate::limit::{CostRule, Limit, Mode, OnMissing, Selector, WeightedMatch};
use crate::match_spec::MatchSpec;
use crate::matcher::{Matcher, PathIndex};
use crate::shed::ShedPolicy;
use class::ClassTable;

/// All limits, compiled for selection. A policy never changes; a reload creates a new one.
#[derive(Debug)]
pub struct Policy {
    limits: Box<[Limit]>,
    /// The match of each limit, as written.
    match_specs: Box<[MatchSpec]>,
    compiled_limits: Box<[CompiledLimit]>,
    index: PathIndex,
    names: Names,
    /// The parameters of all limits and tiers.
    tier_params: Box<[TierParams]>,
    tiers: TierTable,
    path: Option<AttributeId>,
    /// For each attribute, whether a key, a tier, a class or a cost uses it.
    identifying: Box<[bool]>,
    ipv6_prefix: u8,
    /// `None` without shedders.
    classes: Option<Box<ClassTable>>,
    has_candidates: bool,
}

/// Options for all limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyOptions {
    /// The prefix length of IPv6 addresses in keys.
    pub ipv6_prefix: u8,
    /// The attribute that names the tier.
    pub tier_attribute: Option<String>,
    /// The tier of requests with no tier or an unknown one.
    pub default_tier: Option<String>,
    /// More attributes that the facts keep, such as the one by which the caller looks up tiers.
    pub attributes: Vec<String>,
    /// Classes and shedders.
    pub shed: Option<ShedPolicy>,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self {
            ipv6_prefix: 64,
            tier_attribute: None,
            default_tier: None,
            attributes: Vec::new(),
            shed: None,
        }
    }
}

/// The parameters of a limit for one tier, or for all other tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierParams {
    /// The index of the limit.
    pub limit: usize,
    /// The parameters.
    pub params: LimitParams,
    /// The index of the key in [`Limit::keys`]; 0 without `first_of`.
    pub key: usize,
    /// The state id. Tiers with the same period share it.
    pub id: u64,
}

/// One limit with its names resolved to ids.
#[derive(Debug)]
struct CompiledLimit {
    matcher: Matcher,
    key: Box<[AttributeId]>,
    /// The keys of `first_of` after the first.
    fallback_keys: Box<[Box<[AttributeId]>]>,
    /// Equal for limits whose keys have the same bytes in every request.
    key_group: usize,
    cost_attribute: Option<AttributeId>,
    /// Costs by match, in the order in which they are tried.
    weights: Box<[Weight]>,
    /// The index of the parameters; `None` is unlimited. The parameters of further keys follow
    /// those of the first.
    base: Option<usize>,
    tiers: Box<[(TierId, Option<usize>)]>,
    /// The index of the limit that counts the candidate.
    candidate: Option<usize>,
}

/// The cost of requests that match.
#[derive(Debug)]
struct Weight {
    matcher: Matcher,
    units: u64,
}

/// A tier that the policy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TierId(u32);

#[derive(Debug, Default)]
struct TierTable {
    ids: FxHashMap<Box<str>, TierId>,
    /// The names by [`TierId`].
    names: Vec<Arc<str>>,
    attribute: Option<AttributeId>,
    /// The attributes that a request's tier depends on.
    inputs: Vec<AttributeId>,
    default: Option<TierId>,
}

impl TierId {
    /// The index in [`Policy::tier_names`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TierTable {
    fn intern(&mut self, name: &str) -> TierId {
        if let Some(known) = self.ids.get(name) {
            return *known;
        }
        // A file of at most 16 MiB cannot name more than 2^32 tiers.
        let next = TierId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.into());
        self.ids.insert(name.into(), next);
        next
    }
}

/// The most limits. More would not fit the path index, and no hand-written file comes near.
const LIMITS_MAX: usize = 1 << 24;

impl Policy {
    /// Compiles the limits, in file order.
    ///
    /// # Errors
    ///
    /// Fails if a pattern cannot be compiled or a number is out of range. The file layer reports
    /// most of these errors earlier, with a position.
    pub fn new(
        limits: Vec<(Limit, MatchSpec)>,
        options: PolicyOptions,
    ) -> Result<Self, InvalidPolicy> {
        if options.ipv6_prefix > 128 {
            return Err(InvalidPolicy::Ipv6Prefix(options.ipv6_prefix));
        }
        if limits.len() > LIMITS_MAX {
            return Err(InvalidPolicy::TooManyLimits);
        }
        let mut compiler = Compiler::default();
        compiler.options(&options)?;
        for (limit, spec) in &limits {
            compiler.limit(limit, spec)?;
        }
        let all: Vec<&Limit> = limits.iter().map(|(limit, _)| limit).collect();
        let shed = options.shed.as_ref();
        let classes = shed.map(|shed| compiler.classes(shed, &all)).transpose()?;
        let Compiler { mut compiled_limits, index, names, tier_params, tiers, identifying, .. } =
            compiler;
        let (limits, match_specs): (Vec<_>, Vec<_>) = limits.into_iter().unzip();
        Ok(Self {
            has_candidates: candidate::link(&mut compiled_limits, &limits),
            limits: limits.into(),
            match_specs: match_specs.into(),
            compiled_limits: compiled_limits.into(),
            index,
            path: names.get("path"),
            identifying: (0..names.len()).map(|place| identifying.contains(&place)).collect(),
            names,
            tier_params: tier_params.into(),
            tiers,
            ipv6_prefix: options.ipv6_prefix,
            classes: classes.map(Box::new),
        })
    }

    /// The limits in file order, including those that are off or unlimited.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The limits that users can name, with their indices: without candidates and the limits of
    /// shedders, which the program makes for its own use.
    pub fn nameable_limits(&self) -> impl Iterator<Item = (usize, &Limit)> {
        (0..self.limits.len()).filter_map(|index| Some((index, self.nameable_limit(index)?)))
    }

    /// The limit at this index, if users can name it.
    pub fn nameable_limit(&self, index: usize) -> Option<&Limit> {
        self.limits.get(index).filter(|limit| !limit.selector.is_hidden())
    }

    /// The index of the limit with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.limits.iter().position(|limit| *limit.name == *name)
    }

    /// The parameters of every limit and tier, indexed by [`Selected::params_index`].
    pub fn tier_params(&self) -> &[TierParams] {
        &self.tier_params
    }

    /// The names of the tiers, indexed by [`TierId::index`].
    pub fn tier_names(&self) -> &[Arc<str>] {
        &self.tiers.names
    }

    /// The id of an attribute for [`Facts::set_id`], if the policy uses the attribute.
    pub fn attribute(&self, name: &str) -> Option<AttributeId> {
        self.names.get(name)
    }

    /// The attributes that the policy uses.
    pub fn attributes(&self) -> impl Iterator<Item = (AttributeId, &str)> {
        self.names.iter()
    }

    /// Whether a key, a tier, a class or a cost uses the attribute. A request with two values of it
    /// is ambiguous: it could be two clients.
    pub fn identifies(&self, attribute: AttributeId) -> bool {
        self.identifying.get(attribute.index()).is_some_and(|identifies| *identifies)
    }

    /// Creates empty facts for one request, in the buffers of an earlier one.
    pub fn facts(&self, buffer: FactsBuffer) -> Facts<'_> {
        Facts::new(&self.names, self.ipv6_prefix, buffer)
    }
}

#[derive(Default)]
struct Compiler {
    compiled_limits: Vec<CompiledLimit>,
    index: PathIndex,
    names: Names,
    tier_params: Vec<TierParams>,
    tiers: TierTable,
    /// The indices of identifying attributes: see [`Policy::identifies`].
    identifying: FxHashSet<usize>,
    key_groups: FxHashMap<(AttributeKeys, OnMissing), usize>,
}

/// The key of a limit, and the keys of `first_of` behind it.
type AttributeKeys = (Box<[AttributeId]>, Box<[Box<[AttributeId]>]>);

impl Compiler {
    fn options(&mut self, options: &PolicyOptions) -> Result<(), InvalidPolicy> {
        for name in &options.attributes {
            let id = self.attribute(name)?;
            self.tiers.inputs.push(id);
        }
        if let Some(name) = &options.tier_attribute {
            let id = self.attribute(name)?;
            self.tiers.attribute = Some(id);
            self.tiers.inputs.push(id);
        }
        self.tiers.default = options.default_tier.as_ref().map(|tier| self.tiers.intern(tier));
        Ok(())
    }

    fn limit(&mut self, limit: &Limit, spec: &MatchSpec) -> Result<(), InvalidPolicy> {
        let place = self.compiled_limits.len();
        let matcher = self.matcher(&limit.name, spec)?;
        // The key of a limit that `match` does not select has no attributes.
        let is_matched = limit.selector == Selector::Match;
        let key = if is_matched { self.key(&limit.key)? } else { Box::default() };
        let fallback_keys: Box<[_]> =
            limit.fallback_keys.iter().map(|key| self.key(key)).collect::<Result<_, _>>()?;
        let keys = ((key.clone(), fallback_keys.clone()), limit.on_missing);
        let next_group = self.key_groups.len();
        let key_group = *self.key_groups.entry(keys).or_insert(next_group);
        let cost_attribute = match &limit.cost {
            CostRule::Attribute { name, .. } => Some(self.attribute(name)?),
            CostRule::Fixed(_) | CostRule::ByMatch(_) | CostRule::Estimate { .. } => None,
        };
        let weighted = match &limit.cost {
            CostRule::ByMatch(weighted) => &**weighted,
            CostRule::Fixed(_) | CostRule::Attribute { .. } | CostRule::Estimate { .. } => &[],
        };
        let weight = |entry: &WeightedMatch| {
            // The first entry that matches counts, so a request with two values could get the
            // cheaper cost.
            let matcher = self.identifying_matcher(&limit.name, &entry.match_spec)?;
            Ok(Weight { matcher, units: entry.units })
        };
        let weights = weighted.iter().map(weight).collect::<Result<_, InvalidPolicy>>()?;
        let base = self.push_params(place, limit, limit.params);
        let mut tiers = Vec::with_capacity(limit.tiers.len());
        for (name, params) in &limit.tiers {
            tiers.push((self.tiers.intern(name), self.push_params(place, limit, *params)));
        }
        if limit.mode != Mode::Off && is_matched {
            self.index.insert(place, &matcher);
        }
        self.compiled_limits.push(CompiledLimit {
            matcher,
            key,
            fallback_keys,
            key_group,
            cost_attribute,
            weights,
            base,
            tiers: tiers.into(),
            candidate: None,
        });
        Ok(())
    }

    fn matcher(&mut self, name: &str, spec: &MatchSpec) -> Result<Matcher, InvalidPolicy> {
        Matcher::compile(spec, &mut self.names)
            .map_err(|invalid| InvalidPolicy::from_condition(name, invalid))
    }

    /// Compiles a matcher whose attributes are identifying: see [`Policy::identifies`].
    fn identifying_matcher(
        &mut self,
        name: &str,
        spec: &MatchSpec,
    ) -> Result<Matcher, InvalidPolicy> {
        let matcher = self.matcher(name, spec)?;
        for condition in spec.conditions.iter().chain(spec.not.iter().flatten()) {
            self.attribute(&condition.attribute)?;
        }
        Ok(matcher)
    }

    fn key(&mut self, names: &[Box<str>]) -> Result<Box<[AttributeId]>, InvalidPolicy> {
        names.iter().map(|name| self.attribute(name)).collect()
    }

    /// Interns an attribute outside `match` as identifying.
    fn attribute(&mut self, name: &str) -> Result<AttributeId, InvalidPolicy> {
        let id = self.names.intern(name).ok_or(InvalidPolicy::TooManyAttributes)?;
        self.identifying.insert(id.index());
        Ok(id)
    }

    /// Appends the parameters for every key of the limit. Returns the index for the first key;
    /// `None` if unlimited.
    fn push_params(
        &mut self,
        place: usize,
        limit: &Limit,
        params: Option<LimitParams>,
    ) -> Option<usize> {
        let params = params?;
        let first = self.tier_params.len();
        self.tier_params.extend(limit.keys().enumerate().map(|(key, names)| {
            let id = limit.state_id_by(names, &params);
            TierParams { limit: place, params, key, id }
        }));
        Some(first)
    }
}
