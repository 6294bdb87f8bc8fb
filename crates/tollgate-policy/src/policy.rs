//! The compiled policy: facts in, charges out.
//!
//! ```
//! use tollgate_core::{Numbers, Rate, algorithm::Gcra};
//! use tollgate_policy::limit::Limit;
//! use tollgate_policy::match_spec::{Condition, MatchSpec};
//! use tollgate_policy::policy::{Policy, PolicyOptions, Selection};
//!
//! let numbers = Numbers::Gcra(Gcra::try_new(Rate::try_new(100, 60_000_000)?, None)?);
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

mod invalid;
mod select;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use tollgate_core::Numbers;

pub use invalid::InvalidPolicy;
pub(crate) use select::push_value;
pub use select::{EffectiveTier, Selected, Selection};

use crate::facts::{AttributeId, Facts, FactsBuffer, Names};
use crate::limit::{Cost, Limit, Mode};
use crate::match_spec::MatchSpec;
use crate::matcher::{Index, Matcher};

/// All limits, ready to be selected from. It never changes; a reload makes another one.
#[derive(Debug)]
pub struct Policy {
    limits: Box<[Limit]>,
    rules: Box<[Rule]>,
    index: Index,
    names: Names,
    /// The numbers of all limits and tiers.
    numbers: Box<[Variant]>,
    tiers: Tiers,
    path: Option<AttributeId>,
    ipv6_prefix: u8,
}

/// What holds for all limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyOptions {
    /// How much of an IPv6 address makes a key.
    pub ipv6_prefix: u8,
    /// The attribute that names the tier.
    pub tier_attribute: Option<String>,
    /// The tier of requests with no tier or an unknown one.
    pub default_tier: Option<String>,
    /// More attributes that the facts should keep, such as the one by which tiers are looked up elsewhere.
    pub attributes: Vec<String>,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self { ipv6_prefix: 64, tier_attribute: None, default_tier: None, attributes: Vec::new() }
    }
}

/// A limit's numbers for one tier, or for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variant {
    /// The limit's place in the file.
    pub limit: usize,
    /// Its numbers.
    pub numbers: Numbers,
    /// Whose state it is. Tiers share it as long as their period is the same.
    pub id: u64,
}

/// One limit with its names resolved.
#[derive(Debug)]
struct Rule {
    matcher: Matcher,
    key: Box<[AttributeId]>,
    cost_attribute: Option<AttributeId>,
    /// Places in the table of numbers; `None` is unlimited.
    base: Option<usize>,
    tiers: Box<[(TierId, Option<usize>)]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TierId(usize);

#[derive(Debug, Default)]
struct Tiers {
    ids: FxHashMap<Box<str>, TierId>,
    attribute: Option<AttributeId>,
    default: Option<TierId>,
}

impl Tiers {
    fn intern(&mut self, name: &str) -> TierId {
        let next = TierId(self.ids.len());
        *self.ids.entry(name.into()).or_insert(next)
    }
}

/// More would not fit the index, and no file that a person wrote comes near.
const LIMITS_MAX: usize = 1 << 24;

impl Policy {
    /// Compiles the limits, in file order.
    ///
    /// # Errors
    ///
    /// When a pattern cannot be compiled or a number is out of range. The file layer reports most of this
    /// earlier, with the place in the file.
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
        let Compiler { rules, index, names, numbers, tiers } = compiler;
        Ok(Self {
            limits: limits.into_iter().map(|(limit, _)| limit).collect(),
            rules: rules.into(),
            index,
            path: names.get("path"),
            names,
            numbers: numbers.into(),
            tiers,
            ipv6_prefix: options.ipv6_prefix,
        })
    }

    /// The limits, in file order, those that are off or unlimited included.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The place of the limit with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.limits.iter().position(|limit| *limit.name == *name)
    }

    /// The numbers of every limit and tier; [`Selected::numbers_index`] is the place in this list.
    pub fn numbers(&self) -> &[Variant] {
        &self.numbers
    }

    /// The number of an attribute, if the policy uses it, for [`Facts::set_id`].
    pub fn attribute(&self, name: &str) -> Option<AttributeId> {
        self.names.get(name)
    }

    /// The attributes that the policy uses.
    pub fn attributes(&self) -> impl Iterator<Item = (AttributeId, &str)> {
        self.names.iter()
    }

    /// Empty facts for one request, in the memory of earlier ones.
    pub fn facts(&self, buffer: FactsBuffer) -> Facts<'_> {
        Facts::new(&self.names, self.ipv6_prefix, buffer)
    }
}

#[derive(Default)]
struct Compiler {
    rules: Vec<Rule>,
    index: Index,
    names: Names,
    numbers: Vec<Variant>,
    tiers: Tiers,
}

impl Compiler {
    fn options(&mut self, options: &PolicyOptions) -> Result<(), InvalidPolicy> {
        for name in &options.attributes {
            self.attribute(name)?;
        }
        if let Some(name) = &options.tier_attribute {
            self.tiers.attribute = Some(self.attribute(name)?);
        }
        self.tiers.default = options.default_tier.as_ref().map(|tier| self.tiers.intern(tier));
        Ok(())
    }

    fn limit(&mut self, limit: &Limit, spec: &MatchSpec) -> Result<(), InvalidPolicy> {
        let place = self.rules.len();
        let matcher = Matcher::compile(spec, &mut self.names)
            .map_err(|invalid| InvalidPolicy::from_condition(&limit.name, invalid))?;
        // What the key of an addressed limit names is no attribute.
        let names = limit.key.iter().filter(|_| !limit.addressed);
        let key = names.map(|name| self.attribute(name)).collect::<Result<_, _>>()?;
        let cost_attribute = match &limit.cost {
            Cost::Attribute { name, .. } => Some(self.attribute(name)?),
            Cost::Fixed(_) | Cost::Estimate { .. } => None,
        };
        let base = self.numbers(place, limit, limit.numbers);
        let mut tiers = Vec::with_capacity(limit.tiers.len());
        for (name, numbers) in &limit.tiers {
            tiers.push((self.tiers.intern(name), self.numbers(place, limit, *numbers)));
        }
        if limit.mode != Mode::Off && !limit.addressed {
            self.index.insert(place, &matcher);
        }
        self.rules.push(Rule { matcher, key, cost_attribute, base, tiers: tiers.into() });
        Ok(())
    }

    fn attribute(&mut self, name: &str) -> Result<AttributeId, InvalidPolicy> {
        self.names.intern(name).ok_or(InvalidPolicy::TooManyAttributes)
    }

    /// The place of the numbers in the table; unlimited has none.
    fn numbers(&mut self, place: usize, limit: &Limit, numbers: Option<Numbers>) -> Option<usize> {
        let numbers = numbers?;
        self.numbers.push(Variant { limit: place, numbers, id: limit.state_id(&numbers) });
        Some(self.numbers.len() - 1)
    }
}
