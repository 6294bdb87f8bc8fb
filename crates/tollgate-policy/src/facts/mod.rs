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
//! An empty value is an absent one. SHA-256 without a key gives the same value on every node and
//! after every restart, and anyone with the clear value can compute what to look for; stores hash
//! keys with a secret again.

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

/// The attributes of one request, for one policy: [`Policy::facts`](crate::policy::Policy::facts)
/// makes them.
///
/// Values in canonical form are borrowed. Others are rewritten into buffers that
/// [`into_buffer`](Self::into_buffer) hands on to the next request, so nothing is allocated in the
/// long run.
#[derive(Clone)]
pub struct Facts<'a> {
    names: &'a Names,
    ipv6_prefix: u8,
    values: Vec<FactValue<'a>>,
    text: String,
    path: String,
    ambiguous_paths: AmbiguousPaths,
    address: Option<IpAddr>,
    raw_api_key: RawApiKey<'a>,
    tier: FactValue<'a>,
    is_peer_trusted: bool,
    /// `None` in a plain request, which neither fills nor drops it.
    uncommon: Option<Box<UncommonFacts>>,
}

/// Facts that few requests have.
#[derive(Clone, Default)]
struct UncommonFacts {
    /// The readings of the path, if it has several.
    other_paths: Vec<String>,
    /// More values of attributes that no key, tier or cost has.
    more_values: Vec<(AttributeId, String)>,
    unverified: Option<Unverified>,
}

/// The buffers of earlier [`Facts`].
#[derive(Default)]
pub struct FactsBuffer {
    values: Vec<FactValue<'static>>,
    text: String,
    path: String,
}

/// An API key as it was sent.
#[derive(Clone)]
enum RawApiKey<'a> {
    Given(&'a str),
    /// In `text`.
    Written(Range<usize>),
}

#[derive(Clone, Default)]
enum FactValue<'a> {
    #[default]
    Absent,
    /// Sent with the request, but not verified.
    Unverified,
    Given(&'a str),
    /// In `text`.
    Rewritten(Range<usize>),
    /// In `path`.
    Path,
    /// In `address`.
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
            raw_api_key: RawApiKey::Given(""),
            tier: FactValue::Absent,
            is_peer_trusted: false,
            uncommon: None,
        }
    }

    /// Sets how an ambiguous path is treated; by default it is refused. Call it before setting the
    /// path.
    pub fn set_ambiguous_paths(&mut self, ambiguous_paths: AmbiguousPaths) {
        self.ambiguous_paths = ambiguous_paths;
    }

    /// Sets an attribute; one that the policy does not use is not kept. The last value of a name
    /// counts.
    ///
    /// # Errors
    ///
    /// When `ip` is not an address or `path` is [ambiguous](path::ambiguity), whether the policy
    /// uses it or not.
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

    /// Sets an attribute to a value that is in canonical form already, such as one read from a
    /// key. An API key is then its hash, so nothing matches or maps it in clear.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_canonical(&mut self, name: &str, value: &'a str) -> Result<(), InvalidAttribute> {
        match self.names.get(name) {
            Some(id) if self.names.kind(id) == Some(AttributeKind::ApiKey) => {
                self.set_value(id, FactValue::Given(value));
                Ok(())
            }
            _ => self.set(name, value),
        }
    }

    /// Checks a path as [`set`](Self::set) does, without keeping it.
    ///
    /// # Errors
    ///
    /// When the path is ambiguous.
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

    /// [`set`](Self::set) by the id of the attribute.
    ///
    /// # Errors
    ///
    /// If `ip` is not an address or `path` is ambiguous.
    #[inline]
    pub fn set_id(&mut self, id: AttributeId, value: &'a str) -> Result<(), InvalidAttribute> {
        let Some(kind) = self.names.kind(id) else { return Ok(()) };
        let form = match kind {
            _ if value.is_empty() => FactValue::Absent,
            AttributeKind::Text => FactValue::Given(value),
            AttributeKind::Address => {
                self.address = Some(address::parse(value)?);
                FactValue::Address
            }
            AttributeKind::ApiKey => {
                self.raw_api_key = RawApiKey::Given(value);
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
            AttributeKind::Method if !value.bytes().any(|byte| byte.is_ascii_lowercase()) => {
                FactValue::Given(value)
            }
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
    /// If `ip` is not an address or `path` is ambiguous.
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
    /// If `ip` is not an address or `path` is ambiguous.
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
                        self.raw_api_key = RawApiKey::Written(written);
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

    fn set_value(&mut self, id: AttributeId, value: FactValue<'a>) {
        if let Some(slot) = self.values.get_mut(id.index()) {
            *slot = value;
        }
    }

    /// Adds a further value of an attribute that was sent several times. `match` looks at all
    /// values: a limit applies if one matches, and `not` excludes if all do. Keys, tiers and costs
    /// use the value that was set.
    pub fn add_match_value(&mut self, id: AttributeId, value: &str) {
        self.uncommon_mut().more_values.push((id, value.to_owned()));
    }

    /// The values added to an attribute.
    pub(crate) fn extra_values(&self, id: AttributeId) -> impl Iterator<Item = &str> {
        let all = self.uncommon.iter().flat_map(|uncommon| &uncommon.more_values);
        all.filter(move |(known, _)| *known == id).map(|(_, value)| &**value)
    }

    /// Rewrites a path that is not plain.
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

    /// Whether the path has other readings.
    #[inline]
    pub(crate) fn has_other_readings(&self) -> bool {
        self.uncommon.as_ref().is_some_and(|uncommon| !uncommon.other_paths.is_empty())
    }

    /// The same facts for each other reading of the path.
    pub(crate) fn other_readings(&self) -> impl Iterator<Item = Facts<'a>> {
        let of_path = self.uncommon.iter().flat_map(|uncommon| uncommon.other_paths.iter().skip(1));
        of_path.map(|path| Self { path: path.clone(), ..self.clone() })
    }

    #[cold]
    fn uncommon_mut(&mut self) -> &mut UncommonFacts {
        self.uncommon.get_or_insert_default()
    }

    /// Sets `ip` where the address is known already, as it is for a connection.
    pub fn set_address(&mut self, address: IpAddr) {
        if let Some(id) = self.names.get("ip") {
            self.address = Some(unmap(address));
            self.set_value(id, FactValue::Address);
        }
    }

    /// Marks an attribute as sent with the request but not verified. Limits that read it refuse,
    /// unless they say `on_invalid: as_missing`; everything else takes it as absent.
    pub fn set_unverified(&mut self, id: AttributeId, why: Unverified) {
        self.set_value(id, FactValue::Unverified);
        self.uncommon_mut().unverified.get_or_insert(why);
    }

    /// The reason why attributes did not verify, if some did not.
    #[inline]
    pub fn unverified(&self) -> Option<Unverified> {
        self.uncommon.as_ref()?.unverified
    }

    /// Whether this attribute was sent and not verified.
    pub(crate) fn is_unverified(&self, id: AttributeId) -> bool {
        matches!(self.values.get(id.index()), Some(FactValue::Unverified))
    }

    /// Sets the tier from a file. It overrides the tier attribute.
    pub fn set_tier(&mut self, tier: &'a str) {
        self.tier = FactValue::Given(tier);
    }

    /// [`set_tier`](Self::set_tier) for a tier that the caller does not keep, as one from Redis.
    pub fn copy_tier(&mut self, tier: &str) {
        self.tier = self.rewrite(|text| text.push_str(tier));
    }

    /// Says that a trusted proxy sent the request, so that it may name any class.
    pub fn set_peer_trusted(&mut self) {
        self.is_peer_trusted = true;
    }

    pub(crate) const fn is_peer_trusted(&self) -> bool {
        self.is_peer_trusted
    }

    /// The value of an attribute in the form that keys have, if the policy uses it and it is
    /// present.
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

    /// The value for a key, a tier or a cost.
    #[inline]
    pub(crate) fn key_value(&self, id: AttributeId) -> Option<KeyValue<'_>> {
        match self.values.get(id.index())? {
            FactValue::Address => Some(KeyValue::Address(mask(self.address?, self.ipv6_prefix))),
            value => self.resolve(value).map(KeyValue::Text),
        }
    }

    /// The value as it was sent, for maps that hold it in clear: an API key before it is hashed.
    pub fn unhashed(&self, name: &str) -> Option<Cow<'_, str>> {
        let id = self.names.get(name)?;
        match self.match_text(id) {
            Some(text) => Some(Cow::Borrowed(text)),
            None => self.get(name),
        }
    }

    /// The value that patterns are matched with. An API key is matched before it is hashed.
    pub(crate) fn match_text(&self, id: AttributeId) -> Option<&str> {
        let value = self.values.get(id.index())?;
        match (value, self.names.kind(id)?) {
            (FactValue::Rewritten(_), AttributeKind::ApiKey) => match &self.raw_api_key {
                RawApiKey::Given(value) => Some(value),
                RawApiKey::Written(range) => self.text.get(range.clone()),
            },
            _ => self.resolve(value),
        }
    }

    /// The value that a condition looks at, for people: an API key is hashed, an address is whole.
    pub(crate) fn match_value(&self, id: AttributeId) -> Option<String> {
        if let Some(address) = self.match_address(id) {
            return Some(address.to_string());
        }
        match self.key_value(id)? {
            KeyValue::Text(text) => Some(text.to_owned()),
            KeyValue::Address(address) => Some(address.to_string()),
        }
    }

    /// The address that networks are matched with, before it is masked.
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

    /// Whether the facts were made for the policy that has these names.
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
