//! Load shedding as written in the file: classes of requests, and the shedders.

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
    /// The index of the class for requests that no class matches.
    pub default_class: usize,
    /// `fleet`.
    pub fleet: Option<Fleet>,
    /// `adaptive`.
    pub adaptive: Option<Adaptive>,
    /// The attributes that identify a client within a class.
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
    /// The name.
    pub name: Box<str>,
    /// The requests of the class; `None` for a default class that only takes requests that no class
    /// matches.
    pub match_spec: Option<MatchSpec>,
}

impl Class {
    /// Creates a class of the requests that match.
    pub fn new(name: &str, match_spec: Option<MatchSpec>) -> Self {
        Self { name: name.into(), match_spec }
    }
}

/// `shed.fleet`: a bound on the requests in flight over all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fleet {
    /// The most requests in flight.
    pub capacity: u32,
    /// The slots that are reserved for each class.
    pub reserved: Box<[u32]>,
    /// The longest time that a slot is held without renewal.
    pub ttl_us: u64,
    /// The time that a request counts as in flight if its end is not seen.
    pub assume_us: u64,
}

/// `shed.adaptive`: a bound on the requests in flight at one node, adapted to what its upstream can
/// take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adaptive {
    /// The smallest bound.
    pub min: u32,
    /// The largest bound.
    pub max: u32,
}

/// The name of the fleet's shedder among limits.
pub const FLEET: &str = "shed/fleet";
/// The name of the adaptive shedder among limits.
pub const ADAPTIVE: &str = "shed/adaptive";

impl ShedPolicy {
    /// The limits that implement the shedders, with the mode of the file.
    ///
    /// The fleet shedder has one concurrency limit for the first class, and one for each class with
    /// less capacity than the class above it. A limit counts the requests of its class and of all
    /// less important classes.
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
    /// Returns the first class, and each class with less capacity than the class above it. The
    /// capacity is for the class together with all less important ones.
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
