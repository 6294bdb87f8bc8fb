//! Decodes requests of Envoy, and finds the limits of their descriptors.

use super::messages::{RateLimitDescriptor, RateLimitRequest};
use super::status::{INVALID_ARGUMENT, Status};
use smallvec::SmallVec;
use tollgate::engine::{DescriptorMode, MultiCheck, Rules};
use tollgate_core::Rate;
use tollgate_policy::envoy::{Configs, Unit};
use tollgate_policy::facts::{AttributeId, Facts};

/// Limit of descriptors per request. Each costs a decision.
pub const DESCRIPTORS_MAX: usize = 256;
/// Limit of entries per descriptor; deeper than any descriptor tree.
pub const ENTRIES_MAX: usize = 64;

/// The hits of one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// The number of hits.
    pub hits: u64,
    /// Whether the hits are given back.
    pub is_refund: bool,
    /// Whether the descriptor only peeks: its own addend is 0.
    pub is_peek: bool,
}

impl Hits {
    /// The mode for an ordinary limit.
    pub fn mode(self) -> DescriptorMode {
        if self.is_peek { DescriptorMode::Peek } else { DescriptorMode::Enforce }
    }
}

/// Refuses an invalid request.
///
/// # Errors
///
/// With the message of envoyproxy/ratelimit, if it has one.
pub fn validate(request: &RateLimitRequest) -> Result<(), Status> {
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
        if descriptor.entries.iter().any(|entry| entry.key.is_empty()) {
            return bad("an entry of a descriptor has an empty key");
        }
        inline_limit(descriptor)?;
    }
    Ok(())
}

/// The hits of a descriptor. Envoy sends 0 for a request without an addend, so the request's 0
/// means 1. The descriptor's own 0 means 0.
pub fn hits(request: &RateLimitRequest, descriptor: &RateLimitDescriptor) -> Hits {
    let (hits, looks) = match descriptor.hits_addend {
        Some(own) => (own.value, own.value == 0),
        None => (u64::from(request.hits_addend.max(1)), false),
    };
    Hits { hits, is_refund: descriptor.is_negative_hits, is_peek: looks }
}

/// The inline limit of a descriptor.
///
/// # Errors
///
/// When the unit of the limit is unknown.
pub fn inline_limit(descriptor: &RateLimitDescriptor) -> Result<Option<Rate>, Status> {
    let Some(limit) = descriptor.limit else { return Ok(None) };
    // `envoy.type.v3.RateLimitUnit` has no week, unlike the units of files.
    let unit = Unit::of_number(limit.unit).filter(|unit| *unit != Unit::Week);
    let rate =
        unit.and_then(|unit| Rate::try_new(limit.requests_per_unit.into(), unit.period_us()).ok());
    rate.map(Some).ok_or_else(|| {
        Status::new(INVALID_ARGUMENT, "the unit of a descriptor's own limit is unknown")
    })
}

/// The attributes of a policy that descriptors can fill.
#[derive(Debug, Default)]
pub struct DescriptorAttributes {
    /// The generation of the rules.
    generation: u64,
    domain: Option<AttributeId>,
    /// Attributes, with the keys of their entries.
    entries: Vec<(AttributeId, Box<str>)>,
}

impl DescriptorAttributes {
    /// Updates the attributes to those of `rules`.
    pub fn update(&mut self, rules: &Rules) {
        if self.generation != rules.generation() {
            let attributes = rules.policy().attributes();
            self.entries = attributes
                .filter_map(|(id, name)| Some((id, name.strip_prefix("descriptor.")?.into())))
                .collect();
            self.domain = rules.policy().attribute("domain");
            self.generation = rules.generation();
        }
    }

    /// Fills the facts from a descriptor. The first entry of a key counts.
    pub fn fill<'a>(
        &self,
        domain: &'a str,
        descriptor: &'a RateLimitDescriptor,
        facts: &mut Facts<'a>,
    ) {
        // Only addresses can be malformed, and these attributes are not addresses.
        if let Some(id) = self.domain {
            let _ = facts.set_id(id, domain);
        }
        for (id, key) in &self.entries {
            if let Some(entry) = descriptor.entries.iter().find(|entry| *entry.key == **key) {
                let _ = facts.set_id(*id, &entry.value);
            }
        }
    }
}

/// Finds the rule of the files for a descriptor. Writes the key of its count to `key`.
pub fn find(
    configs: &Configs,
    domain: &str,
    descriptor: &RateLimitDescriptor,
    key: &mut Vec<u8>,
) -> Option<usize> {
    let entries = descriptor.entries.iter().map(|entry| (&*entry.key, &*entry.value));
    configs.find(domain, &entries.collect::<SmallVec<[_; 4]>>(), key)
}

/// The key of an inline limit: the domain and all entries, each with its length.
pub fn inline_key(domain: &str, descriptor: &RateLimitDescriptor) -> Vec<u8> {
    let mut key = Vec::new();
    let mut push = |text: &str| {
        key.extend_from_slice(&(text.len() as u64).to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    };
    for entry in descriptor.entries.iter().rev() {
        push(&entry.value);
        push(&entry.key);
    }
    push(domain);
    key
}

/// Charges the inline limit of a descriptor.
pub fn add_inline(
    parts: &mut MultiCheck,
    rate: Rate,
    domain: &str,
    descriptor: &RateLimitDescriptor,
    hits: Hits,
) {
    parts.add_inline(rate, inline_key(domain, descriptor), hits.hits, hits.mode());
}
