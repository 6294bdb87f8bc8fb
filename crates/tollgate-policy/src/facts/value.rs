//! Values of attributes: the canonical form, and errors.

use super::{Facts, FactsBuffer, Names};
use crate::hex;
use crate::identity::address::InvalidAddress;
use crate::path::AmbiguousPath;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// Why a value is not valid for an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidAttribute {
    /// `ip` is not an address.
    Address(InvalidAddress),
    /// Upstreams may read `path` in more than one way.
    Path(AmbiguousPath),
}

impl fmt::Display for InvalidAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => why.fmt(f),
            Self::Path(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for InvalidAttribute {}

impl From<InvalidAddress> for InvalidAttribute {
    fn from(why: InvalidAddress) -> Self {
        Self::Address(why)
    }
}

impl From<AmbiguousPath> for InvalidAttribute {
    fn from(why: AmbiguousPath) -> Self {
        Self::Path(why)
    }
}

/// A value as keys contain it.
pub(crate) enum KeyValue<'f> {
    Text(&'f str),
    Address(IpAddr),
}

/// Returns a value as keys contain it; empty if the value counts as absent.
///
/// # Errors
///
/// Fails if `ip` is not an address or `path` is ambiguous.
pub(crate) fn canonical(
    name: &str,
    value: &str,
    ipv6_prefix: u8,
) -> Result<String, InvalidAttribute> {
    let mut names = Names::default();
    names.intern(name);
    let mut facts = Facts::new(&names, ipv6_prefix, FactsBuffer::default());
    facts.set(name, value)?;
    Ok(facts.get(name).map(Cow::into_owned).unwrap_or_default())
}

/// Removes the port and the final dot of a host, unless the dot is all of it. Does not change its
/// case.
#[inline]
pub fn canonical_host(host: &str) -> &str {
    // The last group of an IPv6 address without brackets is not a port.
    let is_port = |(host, port): &(&str, &str)| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && (host.ends_with(']') || !host.contains(':'))
    };
    let host = host.rsplit_once(':').filter(is_port).map_or(host, |(host, _)| host);
    host.strip_suffix('.').filter(|host| !host.is_empty()).unwrap_or(host)
}

/// The number of hexadecimal digits of the SHA-256 that stand for an API key.
pub(crate) const API_KEY_DIGITS: usize = 32;

/// Returns the digest that replaces a secret in keys and output: the first 128 bits of its SHA-256,
/// in hexadecimal.
pub fn digest(secret: &str) -> String {
    let mut out = String::with_capacity(API_KEY_DIGITS);
    push_digest(&mut out, secret);
    out
}

pub(super) fn push_digest(out: &mut String, secret: &str) {
    let digest = Sha256::digest(secret);
    hex::push(out, hex::LOWER, &digest[..API_KEY_DIGITS / 2]);
}
