//! Key bytes: encodes the values of a key as one byte string, and decodes them.

use crate::facts::AttributeKind;
use crate::limit::Limit;
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use tollgate_core::{push_varint, take_varint};

/// Marks an absent value. A present value starts with its length plus one, which is never zero.
const ABSENT: u8 = 0;

/// Appends a value after its length plus one. This is a prefix code: different tuples have
/// different bytes, whatever bytes their values contain.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &[u8]) {
    push_varint(out, value.len() as u64 + 1);
    out.extend_from_slice(value);
}

/// Appends the mark of an absent value.
pub(super) fn push_absent(out: &mut Vec<u8>) {
    out.push(ABSENT);
}

/// Takes the next value from the front of a key; an absent value is empty. Returns `None` at the
/// end, and for bytes that [`push_value`] did not write.
fn next_value<'k>(rest: &mut &'k [u8]) -> Option<&'k [u8]> {
    let length = usize::try_from(take_varint(rest)?).ok()?;
    rest.split_off(..length.saturating_sub(1))
}

impl Limit {
    /// Decodes the key bytes of [`Selected::key`](super::Selected::key) into attributes and values
    /// in canonical form. Absent values are left out. Returns nothing for keys without attributes:
    /// those of descriptors and of inline limits.
    pub fn key_values<'k>(&self, key_index: usize, mut key: &'k [u8]) -> Vec<(&str, Cow<'k, str>)> {
        let mut values = Vec::new();
        for attribute in self.keys().nth(key_index).unwrap_or_default() {
            let Some(value) = next_value(&mut key) else { return Vec::new() };
            if !value.is_empty() {
                values.push((&**attribute, value_text(attribute, value)));
            }
        }
        if key.is_empty() { values } else { Vec::new() }
    }
}

/// The text of a value; the bytes of an address are its octets.
fn value_text<'k>(attribute: &str, value: &'k [u8]) -> Cow<'k, str> {
    if AttributeKind::of(attribute) == AttributeKind::Address {
        if let Ok(octets) = <[u8; 4]>::try_from(value) {
            return Ipv4Addr::from(octets).to_string().into();
        }
        if let Ok(octets) = <[u8; 16]>::try_from(value) {
            return Ipv6Addr::from(octets).to_string().into();
        }
    }
    String::from_utf8_lossy(value)
}

#[cfg(test)]
mod tests;
