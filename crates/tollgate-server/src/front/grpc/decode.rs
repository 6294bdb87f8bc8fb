//! A request, and what it asks of which limit.

use super::asking::{Asking, Descriptor};
use super::fault::{INVALID_ARGUMENT, Status};
use tollgate::{Parts, Rules, Use};
use tollgate_core::Rate;
use tollgate_policy::envoy::{Configs, Unit};
use tollgate_policy::facts::{AttributeId, Facts};

/// More than any route makes; each is decided, so that a caller must not have them for free.
pub const DESCRIPTORS_MAX: usize = 256;
/// More than any tree is deep.
pub const ENTRIES_MAX: usize = 64;

/// What one descriptor asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// How many.
    pub hits: u64,
    /// Whether they are given back.
    pub refunds: bool,
    /// Whether none is taken: an addend of 0 that somebody wrote.
    pub looks: bool,
}

/// What a descriptor says it is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// By the limits that apply to its attributes, and by the files.
    ByPolicy,
    /// By what came with it.
    By(Rate),
}

impl Limited {
    /// What came with the descriptor.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::ByPolicy => None,
            Self::By(rate) => Some(rate),
        }
    }
}

/// Refuses what cannot be decided.
///
/// # Errors
///
/// With what the original says, where it says anything.
pub fn check(request: &Asking<'_>) -> Result<(), Status> {
    let bad = |message: &'static str| Err(Status::new(INVALID_ARGUMENT, message));
    if request.domain.is_empty() {
        return bad("rate limit domain must not be empty");
    }
    if request.descriptors.is_empty() {
        return bad("rate limit descriptor list must not be empty");
    }
    if request.descriptors.len() > DESCRIPTORS_MAX {
        return bad("more than 256 descriptors");
    }
    for descriptor in &request.descriptors {
        if descriptor.entries.len() > ENTRIES_MAX {
            return bad("a descriptor has more than 64 entries");
        }
        if descriptor.entries.iter().any(|(key, _)| key.is_empty()) {
            return bad("an entry of a descriptor has an empty key");
        }
        limited(descriptor)?;
    }
    Ok(())
}

/// How many hits a descriptor asks for. Envoy sends 0 for a request whose addend nobody set, which means 1; a descriptor's own 0 is meant.
pub fn hits(request: &Asking<'_>, descriptor: &Descriptor<'_>) -> Hits {
    let (hits, looks) = match descriptor.hits_addend {
        Some(own) => (own, own == 0),
        None => (u64::from(request.hits_addend.max(1)), false),
    };
    Hits { hits, refunds: descriptor.is_negative_hits, looks }
}

/// What came with a descriptor.
///
/// # Errors
///
/// When its unit is none.
pub fn limited(descriptor: &Descriptor<'_>) -> Result<Limited, Status> {
    let Some(own) = descriptor.limit else { return Ok(Limited::ByPolicy) };
    // Of the two enumerations of units this is the one without a week.
    let unit = Unit::of_number(own.unit).filter(|unit| *unit != Unit::Week);
    let rate =
        unit.and_then(|unit| Rate::try_new(own.requests_per_unit.into(), unit.period_us()).ok());
    rate.map(Limited::By).ok_or_else(|| {
        Status::new(INVALID_ARGUMENT, "the unit of a descriptor's own limit is unknown")
    })
}

/// Which attributes of a policy a descriptor can have.
#[derive(Debug, Default)]
pub struct Names {
    /// Of the rules that it was made for.
    generation: u64,
    domain: Option<AttributeId>,
    /// By the entries' keys.
    entries: Vec<(AttributeId, Box<str>)>,
}

impl Names {
    /// Those of `rules`.
    pub fn renew(&mut self, rules: &Rules) {
        if self.generation != rules.generation() {
            let attributes = rules.policy().attributes();
            self.entries = attributes
                .filter_map(|(id, name)| Some((id, name.strip_prefix("descriptor.")?.into())))
                .collect();
            self.domain = rules.policy().attribute("domain");
            self.generation = rules.generation();
        }
    }

    /// Tells the facts what a descriptor says; of a key that it has twice, the first.
    pub fn fill<'a>(&self, domain: &'a str, descriptor: &'a Descriptor<'_>, facts: &mut Facts<'a>) {
        // None of these is an address, which is all that could be wrong with a value.
        if let Some(id) = self.domain {
            let _ = facts.set_id(id, domain);
        }
        for (id, key) in &self.entries {
            if let Some((_, value)) = descriptor.entries.iter().find(|(name, _)| *name == &**key) {
                let _ = facts.set_id(*id, value);
            }
        }
    }
}

/// The limit of the files for a descriptor, and whose count it is.
pub fn find(
    configs: &Configs,
    domain: &str,
    descriptor: &Descriptor<'_>,
    key: &mut Vec<u8>,
) -> Option<usize> {
    configs.find(domain, &descriptor.entries, key)
}

/// A key for a limit that came with a descriptor: the domain and all that the descriptor says, no two of which are alike.
pub fn own_key(domain: &str, descriptor: &Descriptor<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    let mut push = |text: &str| {
        key.extend_from_slice(&(text.len() as u64).to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    };
    for (key, value) in descriptor.entries.iter().rev() {
        push(value);
        push(key);
    }
    push(domain);
    key
}

/// Adds what a descriptor's own limit is charged.
pub fn add_own(
    parts: &mut Parts,
    rate: Rate,
    domain: &str,
    descriptor: &Descriptor<'_>,
    hits: Hits,
) {
    let how = if hits.looks { Use::Look } else { Use::Charge };
    parts.add_brought(rate, own_key(domain, descriptor), hits.hits, how);
}
