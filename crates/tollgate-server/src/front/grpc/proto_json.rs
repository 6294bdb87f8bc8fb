//! Numbers, units and `null` in proto3 JSON, for the messages that are read from JSON.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;
use tollgate_policy::envoy::Unit;

/// Reads a field; `null` is its default.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a whole number from 0; `null` is 0.
pub(super) fn whole<'de, D: Deserializer<'de>, T: TryFrom<i128>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let number = deserializer.deserialize_any(ProtoIntegerVisitor)?;
    T::try_from(number).map_err(|_| D::Error::custom("a number is negative or too large"))
}

/// Reads a unit by its name or its number; `null` is `UNKNOWN`.
pub(super) fn unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let number = deserializer.deserialize_any(UnitVisitor)?;
    i32::try_from(number).map_err(|_| D::Error::custom("there is no such unit"))
}

/// Reads a number as JavaScript may have written it: in quotes, or with an exponent.
struct ProtoIntegerVisitor;

impl Visitor<'_> for ProtoIntegerVisitor {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, by itself or in quotes")
    }

    fn visit_unit<E: Error>(self) -> Result<i128, E> {
        Ok(0)
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
struct UnitVisitor;

impl Visitor<'_> for UnitVisitor {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the number of a unit")
    }

    fn visit_unit<E: Error>(self) -> Result<i128, E> {
        Ok(0)
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
