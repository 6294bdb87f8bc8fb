//! Sums of units by limit, tier or attribute.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::str::FromStr;
use tollgate_observe::usage::UsageRow;

/// The grouping of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    Limit,
    Tier,
    /// An attribute of the key.
    Attribute(Box<str>),
}

/// Sums of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitSums {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) given_back: u64,
}

/// The sums of each group, in total and by interval.
#[derive(Debug)]
pub(super) struct Totals {
    by: Grouping,
    groups: HashMap<Box<str>, UnitSums>,
    times: BTreeMap<u64, UnitSums>,
    /// The attributes of the keys.
    attributes: BTreeSet<String>,
}

impl FromStr for Grouping {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "limit" => Self::Limit,
            "tier" => Self::Tier,
            attribute => Self::Attribute(attribute.into()),
        })
    }
}

impl Grouping {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Limit => "limit",
            Self::Tier => "tier",
            Self::Attribute(name) => name,
        }
    }

    /// The group of a row.
    fn group<'a>(&self, row: &'a UsageRow) -> &'a str {
        match self {
            Self::Limit => &row.limit,
            Self::Tier => row.tier.as_deref().unwrap_or("(none)"),
            Self::Attribute(name) => match &row.key {
                None => "(over max_keys)",
                Some(key) => key.get(&**name).map_or("(none)", |value| value),
            },
        }
    }
}

impl UnitSums {
    /// The units that were used and not given back.
    pub(super) fn used(&self) -> u64 {
        self.admitted.saturating_sub(self.given_back)
    }

    pub(super) fn to_json(self) -> Value {
        let Self { admitted, refused, given_back } = self;
        let used = self.used();
        json!({"admitted": admitted, "refused": refused, "given_back": given_back, "used": used})
    }

    pub(super) fn add(&mut self, other: Self) {
        self.admitted = self.admitted.saturating_add(other.admitted);
        self.refused = self.refused.saturating_add(other.refused);
        self.given_back = self.given_back.saturating_add(other.given_back);
    }
}

impl Totals {
    pub(super) fn new(by: Grouping) -> Self {
        Self { by, groups: HashMap::new(), times: BTreeMap::new(), attributes: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, time_us: u64, row: &UsageRow) {
        let UsageRow { admitted, refused, given_back, .. } = *row;
        let units = UnitSums { admitted, refused, given_back };
        self.times.entry(time_us).or_default().add(units);
        for attribute in row.key.iter().flatten().map(|(attribute, _)| attribute) {
            if !self.attributes.contains(attribute) {
                self.attributes.insert(attribute.clone());
            }
        }
        let group = self.by.group(row);
        match self.groups.get_mut(group) {
            Some(sums) => sums.add(units),
            None => drop(self.groups.insert(group.into(), units)),
        }
    }

    /// The groups, the largest use first.
    pub(super) fn groups(&self) -> Vec<(&str, UnitSums)> {
        let mut groups: Vec<(&str, UnitSums)> =
            self.groups.iter().map(|(name, sums)| (&**name, *sums)).collect();
        groups.sort_by(|a, b| (b.1.used(), b.1.refused, a.0).cmp(&(a.1.used(), a.1.refused, b.0)));
        groups
    }

    /// Lists the possible groupings, if no row has the requested attribute.
    pub(super) fn missing_attribute(&self) -> Option<String> {
        let Grouping::Attribute(name) = &self.by else { return None };
        let is_missing = !self.attributes.is_empty() && !self.attributes.contains(&**name);
        let choices = ["limit", "tier"].into_iter().chain(self.attributes.iter().map(|a| &**a));
        is_missing.then(|| choices.collect::<Vec<_>>().join(", "))
    }

    /// The sums of each interval, by its start.
    pub(super) fn times(&self) -> &BTreeMap<u64, UnitSums> {
        &self.times
    }

    pub(super) fn total(&self) -> UnitSums {
        let mut total = UnitSums::default();
        self.times.values().for_each(|sums| total.add(*sums));
        total
    }
}
