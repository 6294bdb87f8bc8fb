//! Compiled `match` conditions: which limits apply to a request.

pub(crate) mod glob;
mod index;
mod networks;
#[cfg(test)]
mod tests;

use ipnet::IpNet;

pub use glob::wildcard_matches;
pub(crate) use index::{PathIndex, PathMatch};
use networks::Networks;

use crate::facts::{AttributeId, AttributeKind, Facts, Names, canonical_host};
use crate::identity::address::{self, unmap_net};
use crate::match_spec::{Condition, MatchSpec};
use crate::path;
use glob::{Glob, PatternTooLong};

/// The conditions of one limit. An absent attribute never matches, not even inside `not`.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// The condition on the path, by which the limit is indexed.
    path: Option<AttributeTest>,
    conditions: Box<[AttributeTest]>,
    not: Box<[Box<[AttributeTest]>]>,
}

/// A condition on one attribute: one of the patterns must match.
#[derive(Debug)]
struct AttributeTest {
    attribute: AttributeId,
    patterns: Patterns,
}

#[derive(Debug)]
enum Patterns {
    Networks(Networks),
    Text {
        /// Sorted patterns without wildcards.
        exact: Box<[Box<str>]>,
        globs: Box<[Glob]>,
    },
}

/// Why a condition cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InvalidCondition {
    /// More attribute names than ids.
    TooManyAttributes,
    /// A pattern for `ip` that is neither an address nor a network.
    Address(String),
    /// More bytes between wildcards than a glob may have.
    PatternTooLong(String),
}

impl Matcher {
    pub(crate) fn compile(spec: &MatchSpec, names: &mut Names) -> Result<Self, InvalidCondition> {
        let mut conditions = compile(&spec.conditions, names)?;
        let by_path = spec
            .conditions
            .iter()
            .position(|c| AttributeKind::of(&c.attribute) == AttributeKind::Path);
        let path = by_path.map(|place| conditions.remove(place));
        // An empty map excludes nothing. Taken as "all of no conditions", it would exclude every
        // request.
        let not = spec.not.iter().filter(|conditions| !conditions.is_empty());
        let not = not.map(|conditions| compile(conditions, names).map(Vec::into_boxed_slice));
        Ok(Self {
            path,
            conditions: conditions.into_boxed_slice(),
            not: not.collect::<Result<_, _>>()?,
        })
    }

    /// Whether the limit applies. With `is_path_checked`, the index has checked the path already.
    ///
    /// A request may have several values of an attribute, and upstreams differ in which one they
    /// read. So the limit applies if one value matches, and `not` excludes only if all values
    /// match.
    #[inline]
    pub(crate) fn matches(&self, facts: &Facts<'_>, is_path_checked: bool) -> bool {
        self.matches_visited(facts, is_path_checked, &mut ())
    }

    /// [`matches`](Self::matches), with a visitor that learns why the limit does not apply.
    #[inline]
    pub(crate) fn matches_visited(
        &self,
        facts: &Facts<'_>,
        is_path_checked: bool,
        visitor: &mut impl ConditionVisitor,
    ) -> bool {
        let mut meets = |test: &AttributeTest| {
            let is_met = test.matches_any(facts);
            if !is_met {
                visitor.unmet(test.attribute);
            }
            is_met
        };
        (is_path_checked || self.path.as_ref().is_none_or(&mut meets))
            && self.conditions.iter().all(meets)
            && (self.not.is_empty() || !self.excludes(facts, visitor))
    }

    #[inline(never)]
    fn excludes(&self, facts: &Facts<'_>, visitor: &mut impl ConditionVisitor) -> bool {
        let excludes = |tests: &[AttributeTest]| tests.iter().all(|test| test.matches_every(facts));
        let excluding = self.not.iter().position(|tests| excludes(tests));
        if let Some(index) = excluding {
            visitor.excluded(index);
        }
        excluding.is_some()
    }
}

/// Learns why a limit does not apply. Selection passes `()`, which compiles to nothing.
pub(crate) trait ConditionVisitor {
    /// Called for a condition that is not met. Later conditions are not tested.
    fn unmet(&mut self, attribute: AttributeId);

    /// Called when all conditions of a map under `not` are met. `index` does not count maps without
    /// conditions.
    fn excluded(&mut self, index: usize);
}

impl ConditionVisitor for () {
    #[inline]
    fn unmet(&mut self, _: AttributeId) {}

    #[inline]
    fn excluded(&mut self, _: usize) {}
}

impl Matcher {
    /// Whether the limit applies to some request with these facts, if attributes in `open` may have
    /// any value.
    pub(crate) fn may_match(&self, facts: &Facts<'_>, open: &[AttributeId]) -> bool {
        let is_open = |test: &AttributeTest| open.contains(&test.attribute);
        let mut conditions = self.path.iter().chain(&self.conditions);
        let excludes = |tests: &[AttributeTest]| {
            tests.iter().all(|test| !is_open(test) && test.matches(facts))
        };
        conditions.all(|test| is_open(test) || test.matches(facts))
            && !self.not.iter().any(|tests| excludes(tests))
    }

    /// Whether the limit would apply if every condition on an unverified attribute held. Inside
    /// `not` such an attribute counts as absent: an exclusion needs a verified value. Attributes in
    /// `open` may have any value.
    pub(crate) fn could_match(
        &self,
        facts: &Facts<'_>,
        is_path_checked: bool,
        open: &[AttributeId],
    ) -> bool {
        let is_open = |test: &AttributeTest| open.contains(&test.attribute);
        let holds = |test: &AttributeTest| is_open(test) || test.matches_any(facts);
        let could = |test: &AttributeTest| facts.is_unverified(test.attribute) || holds(test);
        let excludes = |tests: &[AttributeTest]| {
            tests.iter().all(|test| !is_open(test) && test.matches_every(facts))
        };
        (is_path_checked || self.path.as_ref().is_none_or(holds))
            && self.conditions.iter().all(could)
            && !self.not.iter().any(|tests| excludes(tests))
    }

    /// The attributes of the conditions, except those inside `not`.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = AttributeId> {
        self.conditions.iter().map(|test| test.attribute)
    }
}

impl AttributeTest {
    #[inline(never)]
    fn matches_any(&self, facts: &Facts<'_>) -> bool {
        self.matches(facts) || facts.is_uncommon() && self.matches_extra(facts)
    }

    #[cold]
    fn matches_extra(&self, facts: &Facts<'_>) -> bool {
        facts.extra_values(self.attribute).any(|value| self.patterns.match_text(value))
    }

    fn matches_every(&self, facts: &Facts<'_>) -> bool {
        self.matches(facts)
            && facts.extra_values(self.attribute).all(|value| self.patterns.match_text(value))
    }

    #[inline]
    fn matches(&self, facts: &Facts<'_>) -> bool {
        match &self.patterns {
            Patterns::Networks(networks) => self.matches_address(facts, networks),
            Patterns::Text { .. } => {
                facts.match_text(self.attribute).is_some_and(|text| self.patterns.match_text(text))
            }
        }
    }

    #[inline(never)]
    fn matches_address(&self, facts: &Facts<'_>, networks: &Networks) -> bool {
        facts.match_address(self.attribute).is_some_and(|address| networks.contain(address))
    }
}

fn compile(
    conditions: &[Condition],
    names: &mut Names,
) -> Result<Vec<AttributeTest>, InvalidCondition> {
    let test = |condition: &Condition| {
        let attribute = &condition.attribute;
        Ok(AttributeTest {
            attribute: names.intern(attribute).ok_or(InvalidCondition::TooManyAttributes)?,
            patterns: Patterns::compile(AttributeKind::of(attribute), &condition.patterns)?,
        })
    };
    conditions.iter().map(test).collect()
}

impl Patterns {
    #[inline]
    fn match_text(&self, text: &str) -> bool {
        match self {
            Self::Text { exact, globs } if globs.is_empty() && exact.len() == 1 => {
                *exact[0] == *text
            }
            _ => self.match_many(text),
        }
    }

    #[inline(never)]
    fn match_many(&self, text: &str) -> bool {
        let Self::Text { exact, globs } = self else { return false };
        exact.binary_search_by(|candidate| (**candidate).cmp(text)).is_ok()
            || globs.iter().any(|glob| glob.matches(text))
    }

    fn compile(kind: AttributeKind, patterns: &[String]) -> Result<Self, InvalidCondition> {
        if kind == AttributeKind::Address {
            let networks = patterns.iter().map(|pattern| {
                network(pattern).ok_or_else(|| InvalidCondition::Address(pattern.clone()))
            });
            return Ok(Self::Networks(Networks::new(&networks.collect::<Result<Vec<_>, _>>()?)));
        }
        let mut exact = Vec::new();
        let mut globs = Vec::new();
        for pattern in patterns {
            let glob = match kind {
                AttributeKind::Path => Glob::path(&path::normalise_pattern(pattern)),
                AttributeKind::Method => Glob::text(&pattern.to_ascii_uppercase()),
                AttributeKind::Host => Glob::text(&canonical_host(pattern).to_ascii_lowercase()),
                AttributeKind::Text | AttributeKind::Address | AttributeKind::ApiKey => {
                    Glob::text(pattern)
                }
            };
            match glob {
                Ok(Glob::Exact(text)) => exact.push(text),
                Ok(glob) => globs.push(glob),
                Err(PatternTooLong) => {
                    return Err(InvalidCondition::PatternTooLong(pattern.clone()));
                }
            }
        }
        exact.sort_unstable();
        Ok(Self::Text { exact: exact.into(), globs: globs.into() })
    }
}

/// Parses a network, or an address as a network of one address.
fn network(pattern: &str) -> Option<IpNet> {
    match pattern.parse::<IpNet>() {
        Ok(network) => Some(unmap_net(network)),
        Err(_) => address::parse(pattern).ok().map(IpNet::from),
    }
}
