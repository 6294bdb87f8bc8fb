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
//! envoyproxy/ratelimit joins a descriptor into one text, so (`a_b`, `c`) and (`a`, `b_c`) share a
//! counter there. Here keys and values stay separate, in the tree and in counter keys.

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

/// The limits of all ratelimit files.
#[derive(Clone, Debug, Default)]
pub struct Configs {
    domains: FxHashMap<Box<str>, DescriptorLevel>,
    rules: Vec<DescriptorRule>,
}

/// Options that apply to all limits of the files.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConfigOptions {
    /// Whether refused requests cost nothing, as for other limits. envoyproxy/ratelimit counts
    /// them.
    pub strict: bool,
    /// What the limits do when the store cannot decide.
    pub on_store_failure: OnStoreFailure,
}

/// One `rate_limit` of a ratelimit file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DescriptorRule {
    /// The limit that the engine decides; `None` is unlimited.
    pub limit: Option<Limit>,
    /// `name`: shown to users, and referred to by [`replaces`](Self::replaces).
    pub name: Option<Box<str>>,
    /// The names of limits that a request ignores if it matches this one.
    pub replaces: Box<[Box<str>]>,
    /// `quota_mode`: exceeding this limit alone refuses no request.
    pub quota: bool,
    /// `unit`; `None` is unlimited.
    pub unit: Option<Unit>,
    /// `requests_per_unit`.
    pub requests_per_unit: u32,
    /// `metadata`, returned when the descriptor is admitted.
    pub metadata: Option<Metadata>,
}

impl DescriptorRule {
    /// Whether the rule is a quota: a limit that refuses only together with all other quotas of a
    /// request.
    pub fn is_quota(&self) -> bool {
        self.quota && self.limit.is_some()
    }
}

/// The errors in one ratelimit file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidConfig {
    /// The index of the file in the list.
    pub file: usize,
    /// All errors in the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Configs {
    /// Reads all files, each given with its name.
    ///
    /// # Errors
    ///
    /// All errors, by file.
    pub fn read(
        files: &[(&str, &[u8])],
        options: ConfigOptions,
    ) -> Result<Self, Vec<InvalidConfig>> {
        read::read(files, options)
    }

    /// The limits of all files.
    pub fn rules(&self) -> &[DescriptorRule] {
        &self.rules
    }

    /// Whether a file has this domain.
    pub fn has_domain(&self, domain: &str) -> bool {
        self.domains.contains_key(domain)
    }

    /// Finds the limit at the end of the descriptor's path, as an index into
    /// [`rules`](Self::rules). Sets `key` to the counter key.
    pub fn find(&self, domain: &str, entries: &[(&str, &str)], key: &mut Vec<u8>) -> Option<usize> {
        self.domains.get(domain)?.find(entries, key)
    }

    /// Whether one of the found limits replaces `rule`.
    pub fn is_replaced(&self, rule: usize, found: impl IntoIterator<Item = usize>) -> bool {
        let Some(name) = self.rules.get(rule).and_then(|rule| rule.name.as_ref()) else {
            return false;
        };
        let replaces =
            |other: usize| self.rules.get(other).is_some_and(|r| r.replaces.contains(name));
        found.into_iter().any(replaces)
    }
}
