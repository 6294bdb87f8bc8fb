//! A request in the JSON of proto3: names in either spelling, numbers also in quotes and with an exponent, enumerations by name or number, and
//! `null` for what is not said.

use crate::front::grpc::wire::{
    Entry, Override, RateLimitDescriptor, RateLimitRequest, UInt64Value,
};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;
use tollgate_policy::envoy::Unit;

pub(super) fn request(body: &[u8]) -> Result<RateLimitRequest, serde_json::Error> {
    let given: RequestJson = serde_json::from_slice(body)?;
    let entry = |entry: EntryJson| Entry { key: entry.key, value: entry.value };
    let descriptor = |one: DescriptorJson| RateLimitDescriptor {
        entries: one.entries.into_iter().map(entry).collect(),
        limit: one.limit.map(|limit| Override {
            requests_per_unit: limit.requests_per_unit.0,
            unit: limit.unit.0,
        }),
        hits_addend: one.hits_addend.map(|value| UInt64Value { value: value.0 }),
        is_negative_hits: one.is_negative_hits,
    };
    Ok(RateLimitRequest {
        domain: given.domain,
        descriptors: given.descriptors.into_iter().map(descriptor).collect(),
        hits_addend: given.hits_addend.0,
    })
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct RequestJson {
    #[serde(deserialize_with = "or_null")]
    domain: String,
    #[serde(deserialize_with = "or_null")]
    descriptors: Vec<DescriptorJson>,
    #[serde(alias = "hits_addend", deserialize_with = "or_null")]
    hits_addend: Count<u32>,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct DescriptorJson {
    #[serde(deserialize_with = "or_null")]
    entries: Vec<EntryJson>,
    limit: Option<OverrideJson>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Count<u64>>,
    #[serde(alias = "is_negative_hits", deserialize_with = "or_null")]
    is_negative_hits: bool,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct EntryJson {
    #[serde(deserialize_with = "or_null")]
    key: String,
    #[serde(deserialize_with = "or_null")]
    value: String,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct OverrideJson {
    #[serde(alias = "requests_per_unit", deserialize_with = "or_null")]
    requests_per_unit: Count<u32>,
    #[serde(deserialize_with = "or_null")]
    unit: UnitJson,
}

/// A field that is `null` has its default.
fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A whole number, from 0.
#[derive(Default)]
struct Count<T>(T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Count<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_any(Whole)?;
        let count = u64::try_from(number).ok().and_then(|number| T::try_from(number).ok());
        count.map(Self).ok_or_else(|| D::Error::custom("a number is negative or too large"))
    }
}

/// A unit, by its name or its number.
#[derive(Default)]
struct UnitJson(i32);

impl<'de> Deserialize<'de> for UnitJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_any(Named)?;
        i32::try_from(number).map(Self).map_err(|_| D::Error::custom("there is no such unit"))
    }
}

/// Reads a number as JavaScript may have written it.
struct Whole;

impl Visitor<'_> for Whole {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, by itself or in quotes")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i128, E> {
        // More than any of the types has room for.
        let is_whole = number.trunc() == number && number.abs() < 1e20;
        let whole = is_whole.then_some(number as i128);
        whole.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i128, E> {
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        match (is_number, text.parse(), text.parse()) {
            (true, Ok(whole), _) => Ok(whole),
            (true, _, Ok(number)) => self.visit_f64(number),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

/// Reads a unit.
struct Named;

impl Visitor<'_> for Named {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the number of a unit")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i128, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<i128, E> {
        // Elsewhere in any case, but not here.
        let unit = Unit::ALL.into_iter().find(|unit| unit.name() == name);
        match unit {
            Some(unit) => Ok(unit as i128),
            None if name == "UNKNOWN" => Ok(0),
            None => Err(E::invalid_value(Unexpected::Str(name), &self)),
        }
    }
}

#[cfg(test)]
mod tests;
