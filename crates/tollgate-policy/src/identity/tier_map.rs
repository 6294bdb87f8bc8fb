//! The tiers of clients: the map under `tiers`, inline or in the file that `tiers.file` names.
//!
//! ```
//! use tollgate_policy::{TierMap, TierRules};
//!
//! let policy = b"limits: [{name: all, key: [api_key], rate: 1/s, tiers: {pro: 9/s}}]";
//! let rules = TierRules::of(&tollgate_policy::compile(policy).unwrap());
//! let tiers = TierMap::read(b"{by: api_key, map: {key-1: pro}}", &rules).unwrap();
//! // The map is asked by the value that keys have: an API key is hashed.
//! assert_eq!((tiers.by(), tiers.len(), tiers.tier("key-1")), ("api_key", 1, None));
//! ```

#[cfg(test)]
mod tests;

use super::hash;
use super::hash::HASH_PREFIX;
use crate::Compiled;
use crate::diagnostic::{Position, Report, codes, listed, nearest, quoted};
use crate::facts::{self, API_KEY_DIGITS};
use crate::grammar::{self, Problem};
use crate::raw::{At, Decode, Entries, File, MappedTier, TierMapFile};
use crate::settings::TierSource;
use crate::yaml::{self, Node, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt;

/// Tiers by the value of one attribute.
#[derive(Clone, PartialEq, Eq)]
pub struct TierMap {
    by: Box<str>,
    /// Tiers by the value as keys contain it.
    tiers: FxHashMap<Box<str>, Box<str>>,
    /// Tiers by the hash of that value. Hashes of API keys are in `tiers`, since keys contain API
    /// keys as hashes.
    hashed: FxHashMap<[u8; 32], Box<str>>,
}

/// The rules of a policy that a tier map must agree with.
#[derive(Clone, Debug)]
pub struct TierRules {
    /// The attribute, if the policy names one.
    by: Option<Box<str>>,
    ipv6_prefix: u8,
    /// The tiers that limits have; `None` if some limit has errors.
    names: Option<BTreeSet<Box<str>>>,
    default: Option<Box<str>>,
}

impl TierRules {
    /// Takes the rules from a policy.
    pub fn of(compiled: &Compiled) -> Self {
        let settings = &compiled.settings;
        let by = match &settings.tiers.source {
            Some(TierSource::File { by, .. }) => by.clone(),
            _ => None,
        };
        let ipv6_prefix = settings.client_address.ipv6_prefix;
        Self::new(&compiled.file, by, ipv6_prefix, settings.tiers.default.clone())
    }

    pub(crate) fn new(
        file: &File,
        by: Option<Box<str>>,
        ipv6_prefix: u8,
        default: Option<Box<str>>,
    ) -> Self {
        let limits = file.limits.iter().flat_map(|limits| &limits.value);
        let is_whole = !file.unreadable.contains(&"limits")
            && limits.clone().all(|limit| !limit.unreadable.contains(&"tiers"));
        let tiers = limits.flat_map(|limit| &limit.tiers).flat_map(|tiers| &tiers.0);
        let names = tiers.map(|(name, _)| name.value.as_str().into()).collect();
        Self { by, ipv6_prefix, names: is_whole.then_some(names), default }
    }

    /// Checks whether a map may have the entry. If key and tier are swapped, the tier is an API
    /// key, so the error does not quote it.
    fn accept_entry(&self, value: &str, tier: &str) -> Result<(), Problem> {
        let is_tier = |name: &str| self.names.as_ref().is_some_and(|names| names.contains(name));
        if is_tier(value) && !is_tier(tier) {
            let message = format!("{} is a tier, but a key belongs here", quoted(value));
            let help = "write `key: tier`, such as `key-1: pro`";
            return Err(Problem::new(codes::UNKNOWN_TIER, message, help));
        }
        self.accept(tier)
    }

    /// Checks whether a map may name the tier.
    fn accept(&self, tier: &str) -> Result<(), Problem> {
        let is_default = tier == "default" || self.default.as_deref() == Some(tier);
        let Some(names) = self.names.as_ref().filter(|_| !is_default) else { return Ok(()) };
        if names.contains(tier) {
            return Ok(());
        }
        let known = names.iter().map(|name| &**name);
        let near = nearest(tier, known.clone());
        let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        let message = format!("no limit has the tier {}{meant}", quoted(tier));
        let help = if names.is_empty() {
            "add `tiers: {...}` to a limit, such as `tiers: {pro: 1000/min}`".to_owned()
        } else {
            format!("limits have {}; add the tier to a limit, or correct it here", listed(known))
        };
        Err(Problem::new(codes::UNKNOWN_TIER, message, help))
    }
}

impl TierMap {
    /// Reads a whole file: the map alone, or {by, map}.
    ///
    /// # Errors
    ///
    /// All errors, in file order.
    pub fn read(bytes: &[u8], rules: &TierRules) -> Result<Self, Vec<crate::Diagnostic>> {
        let node = yaml::parse(bytes).map_err(|error| vec![error])?;
        let mut report = Report::default();
        let (by, map) = match &rules.by {
            Some(by) if !is_wrapped(&node) => {
                (Some(by.clone()), Entries::decode(&node, &mut report))
            }
            _ => wrapped(&node, rules, &mut report),
        };
        let map = map.unwrap_or_else(|| Entries(Vec::new()));
        let map = by.map(|by| Self::new(by, &map, rules, &mut report));
        match map {
            Some(map) if report.is_empty() => Ok(map),
            _ => Err(report.finish()),
        }
    }

    /// Creates a map from its entries. Entries with errors are reported and left out.
    pub(crate) fn new(
        by: Box<str>,
        map: &Entries<MappedTier>,
        rules: &TierRules,
        report: &mut Report,
    ) -> Self {
        let mut this = Self { by, tiers: FxHashMap::default(), hashed: FxHashMap::default() };
        for (value, tier) in &map.0 {
            report.accept(tier.at, rules.accept_entry(value, tier));
            let Some(key) = report.accept(value.at, this.key(value, rules.ipv6_prefix)) else {
                continue;
            };
            this.insert(key, value, tier, report);
        }
        this
    }

    /// The attribute by whose value tiers are looked up.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The number of values in the map.
    pub fn len(&self) -> usize {
        self.tiers.len() + self.hashed.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tier of a value as keys contain it, listed in clear or by its hash.
    pub fn tier(&self, value: &str) -> Option<&str> {
        let by_hash =
            || if self.hashed.is_empty() { None } else { self.hashed.get(&hash::digest(value)) };
        self.tiers.get(value).or_else(by_hash).map(|tier| &**tier)
    }

    fn key(&self, value: &str, ipv6_prefix: u8) -> Result<EntryKey, Problem> {
        let Some(digits) = value.strip_prefix(HASH_PREFIX) else {
            let bad = |_| {
                let message = format!("{} is not an address", quoted(value));
                let help = "write an address such as 192.0.2.7; a map does not take networks";
                Problem::new(codes::BAD_NETWORK, message, help)
            };
            let value = facts::canonical(&self.by, value, ipv6_prefix).map_err(bad)?;
            return Ok(EntryKey::Value(value.into()));
        };
        let Some(digest) = hash::parse(digits) else {
            // The text after the prefix may be an API key in clear, so the message does not quote
            // it.
            let message = "the text after `sha256:` is not a hash";
            let help = "write the line that `tollgate hash` prints: 64 hexadecimal digits";
            return Err(Problem::new(codes::BAD_HASH, message, help));
        };
        Ok(match &*self.by {
            "api_key" => EntryKey::Value(digits[..API_KEY_DIGITS].to_ascii_lowercase().into()),
            _ => EntryKey::Hash(digest),
        })
    }

    fn insert(
        &mut self,
        key: EntryKey,
        value: &At<String>,
        tier: &At<MappedTier>,
        report: &mut Report,
    ) {
        let name: Box<str> = (&***tier).into();
        let before = match key {
            EntryKey::Value(text) => self.tiers.insert(text, name.clone()),
            EntryKey::Hash(digest) => self.hashed.insert(digest, name.clone()),
        };
        if let Some(before) = before.filter(|before| *before != name) {
            let (before, name) = (quoted(&before), quoted(&name));
            let message = format!("this value has the tier {before} above and {name} here");
            let help = "keep one of the two; a value and its hash are the same entry";
            report.error(codes::REPEATED, value.at, message, help);
        }
    }
}

/// How an entry is looked up: by value or by hash.
enum EntryKey {
    Value(Box<str>),
    Hash([u8; 32]),
}

/// Whether the file has the form {by, map}. In a bare map, no tier is itself a map. A file with
/// `by` has this form even if `map` is misspelt.
fn is_wrapped(node: &Node) -> bool {
    let Value::Map(entries) = &node.value else { return false };
    let has_by = entries.iter().any(|(key, _)| key.text == "by");
    let is_map = |node: &Node| matches!(node.value, Value::Map(_));
    entries.iter().any(|(key, node)| is_map(node) && (has_by || key.text == "map"))
}

/// Reads a file of the form {by, map}.
fn wrapped(
    node: &Node,
    rules: &TierRules,
    report: &mut Report,
) -> (Option<Box<str>>, Option<Entries<MappedTier>>) {
    let file = TierMapFile::decode(node, report).unwrap_or_default();
    let by = match (&file.by, &rules.by) {
        (Some(by), None) => report.accept(by.at, grammar::attribute(by)),
        (Some(by), Some(other)) => {
            let by = report.accept(by.at, grammar::attribute(by)).map(|name| (name, by.at));
            if let Some((name, at)) = by.filter(|(name, _)| name != other) {
                let (other, name) = (quoted(other), quoted(&name));
                let message = format!("the policy looks tiers up by {other}, this file by {name}");
                let help = "name the same attribute in both, or in one";
                report.error(codes::REPEATED, at, message, help);
            }
            Some(other.clone())
        }
        (None, Some(other)) => Some(other.clone()),
        (None, None) => {
            if report.is_empty() {
                let help = "add `by: user` here, with the map under `map:`; or `by` to `tiers` in the policy";
                report.error(codes::MISSING_FIELD, Position::START, "`by` is missing", help);
            }
            None
        }
    };
    (by, file.map.map(|map| map.value))
}

/// Hides the values, which may be secrets.
impl fmt::Debug for TierMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierMap").field("by", &self.by).field("len", &self.len()).finish()
    }
}
