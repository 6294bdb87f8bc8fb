//! Load shedding as a file describes it: classes of requests, and the shedders.

use crate::limit::{Limit, Mode, OnStoreFailure, Selector};
use crate::match_spec::MatchSpec;
use tollgate_core::LimitParams;
use tollgate_core::algorithm::Concurrency;

/// `classes` and `shed`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedPolicy {
    /// The classes, the most important first; at least one.
    pub classes: Box<[Class]>,
    /// The index of the class that takes what no class matches.
    pub default_class: usize,
    /// `fleet`.
    pub fleet: Option<Fleet>,
    /// `adaptive`.
    pub adaptive: Option<Adaptive>,
    /// The attributes that tell clients of one class apart.
    pub fair_by: Box<[Box<str>]>,
    /// The attribute that names a less important class.
    pub lower_by: Option<Box<str>>,
    /// The mode of both shedders.
    pub mode: Mode,
}

/// One of `classes`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Class {
    /// Its name.
    pub name: Box<str>,
    /// Its requests; `None` for a default class that only takes what no class matches.
    pub match_spec: Option<MatchSpec>,
}

impl Class {
    /// A class of the requests that match.
    pub fn new(name: &str, match_spec: Option<MatchSpec>) -> Self {
        Self { name: name.into(), match_spec }
    }
}

/// `shed.fleet`: at most so many requests in flight over all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fleet {
    /// How many requests may be in flight.
    pub capacity: u32,
    /// How many of these are reserved for each class.
    pub reserved: Box<[u32]>,
    /// How long a slot is held without renewal.
    pub ttl_us: u64,
    /// How long a request counts as in flight where its end is not seen.
    pub assume_us: u64,
}

/// `shed.adaptive`: as many requests in flight at one node as its upstream can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adaptive {
    /// The least limit.
    pub min: u32,
    /// The largest limit.
    pub max: u32,
}

/// The name of the fleet's shedder among limits.
pub const FLEET: &str = "shed/fleet";
/// The name of the adaptive shedder among limits.
pub const ADAPTIVE: &str = "shed/adaptive";

impl ShedPolicy {
    /// The limits that shedders are made of, with the mode of the file.
    ///
    /// A fleet is one concurrency limit for each class that has less capacity than the class above
    /// it. It counts the requests of that class and of all less important ones.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        let fleet = self.fleet.iter();
        for (class, capacity) in fleet.clone().flat_map(|fleet| fleet.levels()) {
            let name = match class {
                0 => FLEET.to_owned(),
                _ => format!("{FLEET}/{}", self.classes[class].name),
            };
            let ttl_us = fleet.clone().map(|fleet| fleet.ttl_us).max().unwrap_or_default();
            let slots = Concurrency::try_new(capacity.into(), ttl_us).ok();
            let mut limit = Limit::new(&name, &[], slots.map(LimitParams::Concurrency));
            limit.selector = Selector::Class(class);
            limits.push(limit);
        }
        if self.adaptive.is_some() {
            let mut limit = Limit::new(ADAPTIVE, &[], None);
            limit.selector = Selector::Never;
            limits.push(limit);
        }
        for limit in &mut limits {
            limit.mode = self.mode;
            limit.on_store_failure = OnStoreFailure::Open;
        }
        limits
    }
}

impl Fleet {
    /// The capacity of a class and all less important ones, where it is less than that of the
    /// class above.
    fn levels(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut free = self.capacity;
        let mut reserved_above = 0;
        self.reserved.iter().enumerate().filter_map(move |(class, reserved)| {
            let is_level = class == 0 || reserved_above > 0;
            free = free.saturating_sub(reserved_above);
            reserved_above = *reserved;
            is_level.then_some((class, free))
        })
    }
}
