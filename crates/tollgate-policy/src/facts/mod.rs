//! Facts: the attributes of one request, each in its canonical form.
//!
//! | attribute | form |
//! | --- | --- |
//! | `ip` | parsed, unmapped; IPv6 masked to the configured prefix, except for `match` |
//! | `method` | upper case |
//! | `host` | lower case, without port and final dot |
//! | `path` | [`path::normalise`]; limits of all its [readings](path::readings) apply |
//! | `api_key` | the first 128 bits of its SHA-256, in hexadecimal; clear for `match` |
//! | any other | as given |
//!
//! An empty value counts as absent. SHA-256 without a key gives the same value on every node and
//! after every restart. Anyone who knows the clear value can compute it; stores hash keys again
//! with a secret.

mod names;
#[cfg(test)]
mod tests;
mod unverified;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

pub use names::AttributeId;
pub(crate) use names::{AttributeKind, Names};
pub use unverified::Unverified;
use value::push_digest;
pub(crate) use value::{API_KEY_DIGITS, KeyValue, canonical};
pub use value::{InvalidAttribute, canonical_host, digest};

use crate::identity::address::{self, mask, unmap};
use crate::path;
use crate::settings::AmbiguousPaths;

/// The attributes of one request, for one policy. Created by
/// [`Policy::facts`](crate::policy::Policy::facts).
///
/// Values in canonical form are borrowed; other values are rewritten into buffers.
/// [`into_buffer`](Self::into_buffer) returns the buffers for the next request, so the steady state
/// allocates nothing.
#[derive(Clone)]
pub struct Facts<'a> {
    names: &'a Names,
    ipv6_prefix: u8,
    values: Vec<FactValue<'a>>,
    text: String,
    path: String,
    ambiguous_paths: AmbiguousPaths,
    address: Option<IpAddr>,
    /// The API key in clear.
    raw_api_key: FactValue<'a>,
    tier: FactValue<'a>,
    is_peer_trusted: bool,
    /// `None` for most requests, which then neither allocate nor drop it.
    uncommon: Option<Box<UncommonFacts>>,
}

/// Facts that few requests have.
#[derive(Clone, Default)]
struct UncommonFacts {
    /// All readings of an ambiguous path; empty for other paths.
    other_paths: Vec<String>,
    /// Further values of attributes, read by `match` only.
    more_values: Vec<(AttributeId, String)>,
    unverified: Option<Unverified>,
}

/// The buffers of earlier [`Facts`], for reuse.
#[derive(Default)]
pub struct FactsBuffer {
    values: Vec<FactValue<'static>>,
    text: String,
    path: String,
}

#[derive(Clone, Default)]
enum FactValue<'a> {
    #[default]
    Absent,
    /// Sent with the request, but not verified.
    Unverified,
    Given(&'a str),
    /// A range of `text`.
    Rewritten(Range<usize>),
    /// The value is in `path`.
    Path,
    /// The value is in `address`.
    Address,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(names: &'a Names, ipv6_prefix: u8, buffer: FactsBuffer) -> Self {
        let FactsBuffer { mut values, mut text, path } = buffer;
        values.clear();
        values.resize(names.len(), FactValue::Absent);
        text.clear();
        Self {
            names,
            ipv6_prefix,
            values,
            text,
            path,
            ambiguous_paths: AmbiguousPaths::Refuse,
            address: None,
            raw_api_key: FactValue::Absent,
            tier: FactValue::Absent,
            is_peer_trusted: false,
            uncommon: None,
        }
    }

    /// Sets the treatment of ambiguous paths, which are refused by default. Must be called before
    /// the path is set.
    pub fn set_ambiguous_paths(&mut self, ambiguous_paths: AmbiguousPaths) {
        self.ambiguous_paths = ambiguous_paths;
    }

    /// Sets an attribute. Attributes that the policy does not use are dropped. A later value of the
    /// same name replaces the earlier one.
    ///
    /// # Errors
    ///
    /// Fails if `ip` is not an address or `path` is [ambiguous](path::ambiguity), even if the
    /// policy does not use them.
    pub fn set(&mut self, name: &str, value: &'a str) -> Result<(), InvalidAttribute> {
        match self.names.get(name) {
            Some(id) => self.set_id(id, value),
            None if value.is_empty() => Ok(()),
            None => match AttributeKind::of(name) {
                AttributeKind::Address => Ok(address::parse(value).map(drop)?),
                AttributeKind::Path => self.check_path(value),
                _ => Ok(()),
            },
        }
    }

    /// Sets an attribute to a value in canonical form, such as one read from a key. An API key is
    /// given as its hash, so conditions and tier maps cannot see it in clear.
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set).
    pub fn set_canonical(&mut self, name: &str, value: &'a str) -> Result<(), InvalidAttribute> {
        match self.names.get(name) {
            Some(id) if self.names.kind(id) == Some(AttributeKind::ApiKey) => {
                self.set_value(id, FactValue::Given(value));
                Ok(())
            }
            _ => self.set(name, value),
        }
    }

    /// Checks a path like [`set`](Self::set), without storing it.
    ///
    /// # Errors
    ///
    /// Fails if the path is ambiguous.
    #[inline]
    pub fn check_path(&self, path: &str) -> Result<(), InvalidAttribute> {
        match self.ambiguous_paths {
            AmbiguousPaths::MatchAll => Ok(path::readings(path).map(drop)?),
            AmbiguousPaths::Refuse => match path::ambiguity(path) {
                Some(why) => Err(why.into()),
                None => Ok(()),
            },
        }
    }

    /// [`set`](Self::set), by attribute id.
    ///
    /// # Errors
    ///
    /// Fails if `ip` is not an address or `path` is ambiguous.
    #[inline]
    pub fn set_id(&mut self, id: AttributeId, value: &'a str) -> Result<(), InvalidAttribute> {
        let is_canonical = match self.names.kind(id) {
            _ if value.is_empty() => false,
            Some(AttributeKind::Text) => true,
            Some(AttributeKind::Method) => !value.bytes().any(|byte| byte.is_ascii_lowercase()),
            _ => false,
        };
        if is_canonical {
            self.set_value(id, FactValue::Given(value))
        } else {
            self.set_rewritten(id, value)?
        }
        Ok(())
    }

    /// Sets an attribute to the canonical form of `value`.
    #[inline(never)]
    fn set_rewritten(&mut self, id: AttributeId, value: &'a str) -> Result<(), InvalidAttribute> {
        let Some(kind) = self.names.kind(id) else { return Ok(()) };
        let form = match kind {
            _ if value.is_empty() => FactValue::Absent,
            AttributeKind::Text => FactValue::Given(value),
            AttributeKind::Address => {
                self.address = Some(address::parse(value)?);
                FactValue::Address
            }
            AttributeKind::ApiKey => {
                self.raw_api_key = FactValue::Given(value);
                self.rewrite(|text| push_digest(text, value))
            }
            AttributeKind::Host => match canonical_host(value) {
                "" => FactValue::Absent,
                host if !host.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                    FactValue::Given(host)
                }
                host => self.rewrite(|text| {
                    text.extend(host.chars().map(|character| character.to_ascii_lowercase()));
                }),
            },
            AttributeKind::Method => self.rewrite(|text| {
                text.extend(value.chars().map(|character| character.to_ascii_uppercase()));
            }),
            AttributeKind::Path if path::is_plain(value) => FactValue::Given(value),
            AttributeKind::Path => self.set_path(value)?,
        };
        self.set_value(id, form);
        Ok(())
    }

    /// [`set`](Self::set) for a value that `write` appends in pieces.
    ///
    /// # Errors
    ///
    /// Fails if `ip` is not an address or `path` is ambiguous.
    pub fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut String),
    ) -> Result<(), InvalidAttribute> {
        match self.names.get(name) {
            Some(id) => self.write_id(id, write),
            None => Ok(()),
        }
    }

    /// [`set_id`](Self::set_id) for a value that `write` appends in pieces.
    ///
    /// # Errors
    ///
    /// Fails if `ip` is not an address or `path` is ambiguous.
    pub fn write_id(
        &mut self,
        id: AttributeId,
        write: impl FnOnce(&mut String),
    ) -> Result<(), InvalidAttribute> {
        let Some(kind) = self.names.kind(id) else { return Ok(()) };
        let start = self.text.len();
        write(&mut self.text);
        let written = start..self.text.len();
        let form = match kind {
            _ if written.is_empty() => FactValue::Absent,
            AttributeKind::Text => FactValue::Rewritten(written),
            kind => {
                let value = self.text[written.clone()].to_owned();
                match kind {
                    AttributeKind::Address => {
                        self.address = Some(address::parse(&value)?);
                        FactValue::Address
                    }
                    AttributeKind::Path => self.set_path(&value)?,
                    AttributeKind::ApiKey => {
                        self.raw_api_key = FactValue::Rewritten(written);
                        self.rewrite(|text| push_digest(text, &value))
                    }
                    AttributeKind::Method => {
                        self.rewrite(|text| text.push_str(&value.to_ascii_uppercase()))
                    }
                    AttributeKind::Host | AttributeKind::Text => match canonical_host(&value) {
                        "" => FactValue::Absent,
                        host => self.rewrite(|text| text.push_str(&host.to_ascii_lowercase())),
                    },
                }
            }
        };
        self.set_value(id, form);
        Ok(())
    }

    #[inline]
    fn set_value(&mut self, id: AttributeId, value: FactValue<'a>) {
        if let Some(slot) = self.values.get_mut(id.index()) {
            *slot = value;
        }
    }

    /// Adds another value of an attribute that was sent several times. Only `match` reads it: a
    /// limit applies if one value matches, and `not` excludes if all values match. Keys, tiers and
    /// costs use the value that was set.
    pub fn add_match_value(&mut self, id: AttributeId, value: &str) {
        self.uncommon_mut().more_values.push((id, value.to_owned()));
    }

    /// Whether the request has facts that few requests have, such as a second value of a header.
    #[inline]
    pub(crate) fn is_uncommon(&self) -> bool {
        self.uncommon.is_some()
    }

    /// The values that [`add_match_value`](Self::add_match_value) added to an attribute.
    pub(crate) fn extra_values(&self, id: AttributeId) -> impl Iterator<Item = &str> {
        let all = self.uncommon.iter().flat_map(|uncommon| &uncommon.more_values);
        all.filter(move |(known, _)| *known == id).map(|(_, value)| &**value)
    }

    /// Stores a path that is not in normal form, with all its readings.
    fn set_path(&mut self, value: &str) -> Result<FactValue<'a>, InvalidAttribute> {
        if let Some(uncommon) = &mut self.uncommon {
            uncommon.other_paths.clear();
        }
        if self.ambiguous_paths == AmbiguousPaths::Refuse
            && let Some(why) = path::ambiguity(value)
        {
            return Err(why.into());
        }
        path::normalise_into(value, &mut self.path);
        let other_paths = path::readings(value)?;
        if !other_paths.is_empty() {
            self.uncommon_mut().other_paths = other_paths;
        }
        Ok(FactValue::Path)
    }

    /// Whether the path has more than one reading.
    #[inline]
    pub(crate) fn has_other_readings(&self) -> bool {
        self.uncommon.as_ref().is_some_and(|uncommon| !uncommon.other_paths.is_empty())
    }

    /// Copies the facts for each further reading of the path.
    pub(crate) fn other_readings(&self) -> impl Iterator<Item = Facts<'a>> {
        let of_path = self.uncommon.iter().flat_map(|uncommon| uncommon.other_paths.iter().skip(1));
        of_path.map(|path| Self { path: path.clone(), ..self.clone() })
    }

    #[cold]
    fn uncommon_mut(&mut self) -> &mut UncommonFacts {
        self.uncommon.get_or_insert_default()
    }

    /// Sets `ip` to an address that is parsed already, such as the peer's.
    pub fn set_address(&mut self, address: IpAddr) {
        if let Some(id) = self.names.get("ip") {
            self.address = Some(unmap(address));
            self.set_value(id, FactValue::Address);
        }
    }

    /// Marks an attribute as sent but not verified. Limits that read it refuse, unless they have
    /// `on_invalid: as_missing`; everything else treats it as absent.
    pub fn set_unverified(&mut self, id: AttributeId, why: Unverified) {
        self.set_value(id, FactValue::Unverified);
        self.uncommon_mut().unverified.get_or_insert(why);
    }

    /// The reason why an attribute did not verify, if one did not.
    #[inline]
    pub fn unverified(&self) -> Option<Unverified> {
        self.uncommon.as_ref()?.unverified
    }

    /// Whether this attribute was sent but not verified.
    pub(crate) fn is_unverified(&self, id: AttributeId) -> bool {
        matches!(self.values.get(id.index()), Some(FactValue::Unverified))
    }

    /// Sets the tier that a tier map found. It overrides the tier attribute.
    pub fn set_tier(&mut self, tier: &'a str) {
        self.tier = FactValue::Given(tier);
    }

    /// [`set_tier`](Self::set_tier) for a tier that the caller does not keep, such as one from
    /// Redis.
    pub fn copy_tier(&mut self, tier: &str) {
        self.tier = self.rewrite(|text| text.push_str(tier));
    }

    /// Marks the sender as a trusted proxy, which may choose any class.
    pub fn set_peer_trusted(&mut self) {
        self.is_peer_trusted = true;
    }

    pub(crate) const fn is_peer_trusted(&self) -> bool {
        self.is_peer_trusted
    }

    /// Returns an attribute's value as keys contain it. Returns `None` if the value is absent or
    /// the policy does not use the attribute.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.key_value(self.names.get(name)?)? {
            KeyValue::Text(text) => Some(Cow::Borrowed(text)),
            KeyValue::Address(address) => Some(Cow::Owned(address.to_string())),
        }
    }

    /// Returns the buffers, for the next request.
    #[inline]
    pub fn into_buffer(self) -> FactsBuffer {
        let Self { mut values, text, path, .. } = self;
        values.clear();
        // Collecting an empty vector into one of the same layout keeps its allocation.
        let values = values.into_iter().map(|_| FactValue::Absent).collect();
        FactsBuffer { values, text, path }
    }

    /// Returns an attribute's value as keys, tiers and costs read it.
    #[inline]
    pub(crate) fn key_value(&self, id: AttributeId) -> Option<KeyValue<'_>> {
        match self.values.get(id.index())? {
            FactValue::Address => Some(KeyValue::Address(mask(self.address?, self.ipv6_prefix))),
            value => self.resolve(value).map(KeyValue::Text),
        }
    }

    /// Returns an attribute's value as sent, for tier maps in clear: an API key is not hashed.
    pub fn unhashed(&self, name: &str) -> Option<Cow<'_, str>> {
        let text = self.match_text(self.names.get(name)?);
        text.map(Cow::Borrowed).or_else(|| self.get(name))
    }

    /// Returns the value that patterns are matched against: an API key is not hashed.
    #[inline]
    pub(crate) fn match_text(&self, id: AttributeId) -> Option<&str> {
        match self.values.get(id.index())? {
            FactValue::Given(text) => Some(text),
            value => self.match_rewritten(id, value),
        }
    }

    #[inline(never)]
    fn match_rewritten(&self, id: AttributeId, value: &FactValue<'a>) -> Option<&str> {
        match (value, self.names.kind(id)?) {
            (FactValue::Rewritten(_), AttributeKind::ApiKey) => self.resolve(&self.raw_api_key),
            _ => self.resolve(value),
        }
    }

    /// Returns the value that a condition reads, for display: an API key is hashed, an address is
    /// not masked.
    pub(crate) fn match_value(&self, id: AttributeId) -> Option<String> {
        match self.match_address(id) {
            Some(address) => Some(address.to_string()),
            None => self.resolve(self.values.get(id.index())?).map(str::to_owned),
        }
    }

    /// Returns the address that networks are matched against, before masking.
    pub(crate) fn match_address(&self, id: AttributeId) -> Option<IpAddr> {
        match self.values.get(id.index())? {
            FactValue::Address => self.address,
            _ => None,
        }
    }

    /// The tier set with [`set_tier`](Self::set_tier), if any.
    #[inline]
    pub(crate) fn tier(&self) -> Option<&str> {
        self.resolve(&self.tier).filter(|tier| !tier.is_empty())
    }

    /// Whether the facts were created for the policy with these names.
    pub(crate) fn belong_to(&self, names: &Names) -> bool {
        std::ptr::eq(self.names, names)
    }

    fn resolve(&self, value: &FactValue<'a>) -> Option<&str> {
        match value {
            FactValue::Absent | FactValue::Unverified | FactValue::Address => None,
            FactValue::Given(text) => Some(text),
            FactValue::Rewritten(range) => self.text.get(range.clone()),
            FactValue::Path => Some(&self.path),
        }
    }

    fn rewrite(&mut self, write: impl FnOnce(&mut String)) -> FactValue<'a> {
        let start = self.text.len();
        write(&mut self.text);
        FactValue::Rewritten(start..self.text.len())
    }
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = |(id, name)| self.key_value(id).map(|_| name);
        f.debug_set().entries(self.names.iter().filter_map(present)).finish()
    }
}
