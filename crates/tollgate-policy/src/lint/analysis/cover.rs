//! Whether one `match` covers another: it accepts every request that the other accepts.
//!
//! Only proven cases count. A pattern covers an equal pattern and any value it matches. A whole
//! subtree such as `/api/**` covers every pattern below it. For attributes other than `path`, `*`
//! covers every pattern. Unproven cases count as not covered, so lints may miss a finding.

use crate::facts::{AttributeKind, canonical_host};
use crate::match_spec::{Condition, MatchSpec};
use crate::matcher::glob::{Glob, Middle};
use crate::path;
use ipnet::IpNet;

/// A [`MatchSpec`] that can be compared.
#[derive(Debug)]
pub(crate) struct ComparableMatch {
    conditions: AttributePatterns,
    not: Vec<AttributePatterns>,
}

type AttributePatterns = Vec<(Box<str>, Vec<Pattern>)>;

/// One pattern of one attribute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Network(IpNet),
    Glob(Glob),
    /// A pattern that cannot be compared.
    Unknown,
}

impl ComparableMatch {
    pub(crate) fn new(spec: &MatchSpec) -> Self {
        Self {
            conditions: compile(&spec.conditions),
            not: spec.not.iter().map(|conditions| compile(conditions)).collect(),
        }
    }

    /// Returns the match of the requests that both accept.
    pub(crate) fn both(a: &MatchSpec, b: &MatchSpec) -> Self {
        let conditions = a.conditions.iter().chain(&b.conditions).cloned().collect();
        let not = a.not.iter().chain(&b.not).cloned().collect();
        Self::new(&MatchSpec { conditions, not })
    }

    /// Whether no request can meet all conditions: two conditions on one attribute never hold
    /// together.
    pub(crate) fn is_impossible(&self) -> bool {
        let mut later = self.conditions.iter();
        while let Some((attribute, patterns)) = later.next() {
            let is_apart = |(other, others): &(Box<str>, Vec<Pattern>)| {
                let from_all = |p: &Pattern| others.iter().all(|other| p.is_apart_from(other));
                attribute == other && patterns.iter().all(from_all)
            };
            if later.clone().any(is_apart) {
                return true;
            }
        }
        false
    }

    /// The attributes with conditions, and their patterns.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = (&str, &[Pattern])> {
        self.conditions.iter().map(|(attribute, patterns)| (&**attribute, patterns.as_slice()))
    }

    /// The attributes with conditions in exclusions.
    pub(crate) fn excluded(&self) -> impl Iterator<Item = &str> {
        self.not.iter().flatten().map(|(attribute, _)| &**attribute)
    }

    /// Whether this match accepts every request that `other` accepts.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        // `other` must also exclude every request that this match excludes, or must never accept
        // it.
        let is_harmless = |out: &AttributePatterns| {
            other.not.iter().any(|wider| all_covered(wider, out)) || apart(out, &other.conditions)
        };
        all_covered(&self.conditions, &other.conditions) && self.not.iter().all(is_harmless)
    }

    /// Whether this match may accept POST requests for every path that `path` matches. Conditions
    /// on other attributes than path and method are assumed to hold; exclusions with such
    /// conditions are assumed not to hold.
    pub(crate) fn may_cover_posts(&self, path: &Pattern) -> bool {
        let holds = |(attribute, patterns): &(Box<str>, Vec<Pattern>), otherwise: bool| {
            match &**attribute {
                "path" => patterns.iter().any(|pattern| pattern.covers(path)),
                "method" => patterns.iter().any(|pattern| pattern.accepts("POST")),
                _ => otherwise,
            }
        };
        self.conditions.iter().all(|condition| holds(condition, true))
            && !self.not.iter().any(|out| out.iter().all(|condition| holds(condition, false)))
    }

    /// Whether `match` lists the attribute's values, without wildcards.
    pub(crate) fn lists_values_of(&self, attribute: &str) -> bool {
        let of = |(name, _): &&(Box<str>, Vec<Pattern>)| **name == *attribute;
        let is_value = |pattern: &Pattern| matches!(pattern, Pattern::Glob(Glob::Exact(_)));
        self.conditions.iter().find(of).is_some_and(|(_, patterns)| patterns.iter().all(is_value))
    }

    /// Whether only requests with the attribute match.
    pub(crate) fn requires(&self, attribute: &str) -> bool {
        self.conditions.iter().any(|(name, _)| **name == *attribute)
    }
}

impl Pattern {
    pub(crate) fn new(attribute: &str, text: &str) -> Self {
        let kind = AttributeKind::of(attribute);
        let glob = match kind {
            AttributeKind::Address => return text.parse().map_or(Self::Unknown, Self::Network),
            AttributeKind::Path => Glob::path(&path::normalise_pattern(text)),
            AttributeKind::Method => Glob::text(&text.to_ascii_uppercase()),
            AttributeKind::Host => Glob::text(&canonical_host(text).to_ascii_lowercase()),
            AttributeKind::Text | AttributeKind::ApiKey => Glob::text(text),
        };
        glob.map_or(Self::Unknown, Self::Glob)
    }

    /// Whether this pattern matches every value that `other` matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Network(net), Self::Network(other)) => net.contains(other),
            (Self::Glob(glob), Self::Glob(other)) => {
                glob == other
                    || is_anything(glob)
                    || match other {
                        Glob::Exact(value) => glob.matches(value),
                        Glob::Wild { .. } if glob.is_whole_subtree() => {
                            other.anchor().is_some_and(|anchor| glob.matches(anchor))
                        }
                        Glob::Wild { .. } => false,
                    }
            }
            _ => false,
        }
    }

    /// Whether no value matches both patterns.
    fn is_apart_from(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Network(a), Self::Network(b)) => !a.contains(b) && !b.contains(a),
            (Self::Glob(Glob::Exact(a)), Self::Glob(b)) => !b.matches(a),
            (Self::Glob(a), Self::Glob(Glob::Exact(b))) => !a.matches(b),
            _ => false,
        }
    }

    fn accepts(&self, value: &str) -> bool {
        matches!(self, Self::Glob(glob) if glob.matches(value))
    }
}

fn compile(conditions: &[Condition]) -> AttributePatterns {
    let patterns = |condition: &Condition| {
        let pattern = |text: &String| Pattern::new(&condition.attribute, text);
        condition.patterns.iter().map(pattern).collect()
    };
    let entry = |condition: &Condition| (condition.attribute.as_str().into(), patterns(condition));
    conditions.iter().map(entry).collect()
}

/// Whether all of `wide` hold whenever all of `narrow` do.
fn all_covered(wide: &AttributePatterns, narrow: &AttributePatterns) -> bool {
    wide.iter().all(|(attribute, patterns)| {
        narrow.iter().any(|(other, narrower)| {
            let covered = |p: &Pattern| patterns.iter().any(|pattern| pattern.covers(p));
            attribute == other && narrower.iter().all(covered)
        })
    })
}

/// Whether the two sets of conditions never hold together.
fn apart(a: &AttributePatterns, b: &AttributePatterns) -> bool {
    a.iter().any(|(attribute, patterns)| {
        b.iter().any(|(other, others)| {
            let from_all = |p: &Pattern| others.iter().all(|other| p.is_apart_from(other));
            attribute == other && patterns.iter().all(from_all)
        })
    })
}

fn is_anything(glob: &Glob) -> bool {
    matches!(glob, Glob::Wild { head, middle: Middle::Any, tail } if head.is_empty() && tail.is_empty())
}
