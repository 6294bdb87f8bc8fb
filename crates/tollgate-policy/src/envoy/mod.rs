//! Files of envoyproxy/ratelimit, unchanged: domains with a tree of descriptors.
//!
//! ```
//! use tollgate_policy::envoy::{Configs, ConfigOptions};
//!
//! let file = b"domain: edge
//! descriptors:
//!   - {key: user, rate_limit: {unit: minute, requests_per_unit: 10}}
//! ";
//! let configs = Configs::read(&[("edge.yaml", file)], ConfigOptions::default()).unwrap();
//! let mut key = Vec::new();
//! let found = configs.find("edge", &[("user", "ann")], &mut key).unwrap();
//! assert_eq!(configs.rules()[found].requests_per_unit, 10);
//! assert!(configs.find("edge", &[("plan", "free")], &mut key).is_none());
//! ```
//!
//! The original flattens a descriptor into one text, so that (`a_b`, `c`) and (`a`, `b_c`) are one
//! to it. Here every key and value stands by itself, in the tree and in the key that is counted
//! under.

mod allowed_keys;
mod metadata;
mod read;
mod tree;
mod unit;
mod yaml_values;

#[cfg(test)]
mod tests;

pub use metadata::Metadata;
pub use unit::Unit;

use crate::diagnostic::Diagnostic;
use crate::limit::{Limit, OnStoreFailure};
use rustc_hash::FxHashMap;
use tree::DescriptorLevel;

/// All files together.
#[derive(Clone, Debug, Default)]
pub struct Configs {
    domains: FxHashMap<Box<str>, DescriptorLevel>,
    rules: Vec<DescriptorRule>,
}

/// What holds for all of their limits.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConfigOptions {
    /// Whether refusals are free, as for every other limit here; the original counts them.
    pub strict: bool,
    /// What their limits do when the store cannot decide.
    pub on_store_failure: OnStoreFailure,
}

/// One `rate_limit`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DescriptorRule {
    /// As the engine decides it; `None` is unlimited.
    pub limit: Option<Limit>,
    /// `name`, which is shown and which [`replaces`](Self::replaces) refers to.
    pub name: Option<Box<str>>,
    /// The names of limits that do not count in a request in which this one was found.
    pub replaces: Box<[Box<str>]>,
    /// `quota_mode`: being over this limit alone refuses nothing.
    pub quota: bool,
    /// `unit`; `None` is unlimited.
    pub unit: Option<Unit>,
    /// `requests_per_unit`.
    pub requests_per_unit: u32,
    /// `metadata`, handed on when the descriptor passes.
    pub metadata: Option<Metadata>,
}

/// What is wrong with one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidConfig {
    /// Its place in the list.
    pub file: usize,
    /// All errors in it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Configs {
    /// Reads all files, each with its name.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them, by file.
    pub fn read(
        files: &[(&str, &[u8])],
        options: ConfigOptions,
    ) -> Result<Self, Vec<InvalidConfig>> {
        read::read(files, options)
    }

    /// All limits of all files.
    pub fn rules(&self) -> &[DescriptorRule] {
        &self.rules
    }

    /// Whether a file is about this domain.
    pub fn has_domain(&self, domain: &str) -> bool {
        self.domains.contains_key(domain)
    }

    /// The limit for a descriptor, by its place in [`rules`](Self::rules): the one at the
    /// end of its path, if there is one. Then `key` has been set to whose count it is.
    pub fn find(&self, domain: &str, entries: &[(&str, &str)], key: &mut Vec<u8>) -> Option<usize> {
        self.domains.get(domain)?.find(entries, key)
    }

    /// Which of the found limits another one of them replaces.
    pub fn is_replaced(&self, rule: usize, found: impl IntoIterator<Item = usize>) -> bool {
        let Some(name) = self.rules.get(rule).and_then(|rule| rule.name.as_ref()) else {
            return false;
        };
        let replaces =
            |other: usize| self.rules.get(other).is_some_and(|r| r.replaces.contains(name));
        found.into_iter().any(replaces)
    }
}
