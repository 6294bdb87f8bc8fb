//! A request as it stands in its bytes: nothing of it is copied.
//!
//! [`read`] knows what Envoy sends. Whatever else the format allows (fields from a later version, a message in two pieces, numbers written
//! in more bytes than usual) it leaves to the reader of `wire`, and so are all mistakes: it words no error.

use super::decode::{DESCRIPTORS_MAX, ENTRIES_MAX};
use super::wire::{self, Override, RateLimitRequest};
use smallvec::SmallVec;

/// `RateLimitRequest`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asking<'a> {
    /// Whose limits.
    pub domain: &'a str,
    /// What they are asked about.
    pub descriptors: SmallVec<[Descriptor<'a>; 2]>,
    /// How often, for descriptors that do not say so.
    pub hits_addend: u32,
}

/// `RateLimitDescriptor`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Descriptor<'a> {
    /// Keys and values.
    pub entries: SmallVec<[(&'a str, &'a str); 4]>,
    /// A limit of its own.
    pub limit: Option<Override>,
    /// How often.
    pub hits_addend: Option<u64>,
    /// Whether that is given back.
    pub is_negative_hits: bool,
}

impl<'a> Asking<'a> {
    /// What a message says; of more than is taken, enough to be refused.
    pub fn of(request: &'a RateLimitRequest) -> Self {
        let entry = |entry: &'a wire::Entry| (&*entry.key, &*entry.value);
        let descriptor = |one: &'a wire::RateLimitDescriptor| Descriptor {
            entries: one.entries.iter().take(ENTRIES_MAX + 1).map(entry).collect(),
            limit: one.limit,
            hits_addend: one.hits_addend.map(|own| own.value),
            is_negative_hits: one.is_negative_hits,
        };
        let descriptors = request.descriptors.iter().take(DESCRIPTORS_MAX + 1);
        Self {
            domain: &request.domain,
            descriptors: descriptors.map(descriptor).collect(),
            hits_addend: request.hits_addend,
        }
    }
}

/// Reads a message in which nothing is unusual.
pub fn read(bytes: &[u8]) -> Option<Asking<'_>> {
    let mut asking = Asking::default();
    let mut rest = Reader(bytes);
    while let Some(tag) = rest.tag() {
        match tag {
            (1, TEXT) => asking.domain = rest.text()?,
            (2, TEXT) if asking.descriptors.len() < DESCRIPTORS_MAX => {
                asking.descriptors.push(descriptor(rest.bytes()?)?);
            }
            (3, NUMBER) => asking.hits_addend = rest.number()? as u32,
            _ => return None,
        }
    }
    Some(asking)
}

fn descriptor(bytes: &[u8]) -> Option<Descriptor<'_>> {
    let mut descriptor = Descriptor::default();
    let mut rest = Reader(bytes);
    while let Some(tag) = rest.tag() {
        match tag {
            (1, TEXT) if descriptor.entries.len() < ENTRIES_MAX => {
                descriptor.entries.push(entry(rest.bytes()?)?);
            }
            // Two of one kind are one, made of both.
            (2, TEXT) if descriptor.limit.is_none() => {
                descriptor.limit = Some(own(rest.bytes()?)?);
            }
            (3, TEXT) if descriptor.hits_addend.is_none() => {
                descriptor.hits_addend = Some(addend(rest.bytes()?)?);
            }
            (4, NUMBER) => descriptor.is_negative_hits = rest.number()? != 0,
            _ => return None,
        }
    }
    Some(descriptor)
}

fn entry(bytes: &[u8]) -> Option<(&str, &str)> {
    let (mut key, mut value) = ("", "");
    let mut rest = Reader(bytes);
    while let Some(tag) = rest.tag() {
        match tag {
            (1, TEXT) => key = rest.text()?,
            (2, TEXT) => value = rest.text()?,
            _ => return None,
        }
    }
    Some((key, value))
}

fn own(bytes: &[u8]) -> Option<Override> {
    let mut own = Override::default();
    let mut rest = Reader(bytes);
    while let Some(tag) = rest.tag() {
        match tag {
            (1, NUMBER) => own.requests_per_unit = rest.number()? as u32,
            (2, NUMBER) => own.unit = rest.number()? as i32,
            _ => return None,
        }
    }
    Some(own)
}

fn addend(bytes: &[u8]) -> Option<u64> {
    let mut value = 0;
    let mut rest = Reader(bytes);
    while let Some(tag) = rest.tag() {
        match tag {
            (1, NUMBER) => value = rest.number()?,
            _ => return None,
        }
    }
    Some(value)
}

/// How a number is written.
const NUMBER: u8 = 0;
/// How text, bytes and messages are written: behind their length.
const TEXT: u8 = 2;
/// Bytes of a number that cannot be too large.
const NUMBER_BYTES: usize = 9;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A field's number, and how it is written; `None` at the end. One of more than a byte is none that is known.
    fn tag(&mut self) -> Option<(u8, u8)> {
        let (tag, rest) = self.0.split_first()?;
        self.0 = rest;
        Some((tag >> 3, tag & 7))
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for (place, byte) in self.0.iter().enumerate().take(NUMBER_BYTES) {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.0 = &self.0[place + 1..];
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests;
