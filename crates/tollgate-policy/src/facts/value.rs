//! Values of attributes: their canonical form, and why one is invalid.

use super::{Facts, FactsBuffer, Names};
use crate::hex;
use crate::identity::address::InvalidAddress;
use crate::path::AmbiguousPath;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// Why an attribute cannot have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidAttribute {
    /// `ip` is not an address.
    Address(InvalidAddress),
    /// Servers read `path` in more than one way.
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

/// Names only: values may be secrets.
/// A value in the form that keys have.
pub(crate) enum KeyValue<'f> {
    Text(&'f str),
    Address(IpAddr),
}

/// The value of one attribute in the form that keys have; empty where it counts as absent.
///
/// # Errors
///
/// When the attribute is `ip` and the value is not an address, or `path` and ambiguous.
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

/// A host without its port and its final dot. Its case is left alone.
#[inline]
pub fn canonical_host(host: &str) -> &str {
    // The last group of an IPv6 address without brackets is no port.
    let is_port = |(host, port): &(&str, &str)| {
        port.bytes().all(|byte| byte.is_ascii_digit())
            && (host.ends_with(']') || !host.contains(':'))
    };
    let host = host.rsplit_once(':').filter(is_port).map_or(host, |(host, _)| host);
    host.strip_suffix('.').unwrap_or(host)
}

/// How many hexadecimal digits of the SHA-256 stand for an API key.
pub(crate) const API_KEY_DIGITS: usize = 32;

/// A secret as it is shown and as keys have it: the first 128 bits of its SHA-256, in hexadecimal.
pub fn digest(secret: &str) -> String {
    let mut out = String::with_capacity(API_KEY_DIGITS);
    push_digest(&mut out, secret);
    out
}

pub(super) fn push_digest(out: &mut String, secret: &str) {
    let digest = Sha256::digest(secret);
    hex::push(out, hex::LOWER, &digest[..API_KEY_DIGITS / 2]);
}
