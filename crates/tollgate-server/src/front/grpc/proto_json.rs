//! Numbers, units and `null` in proto3 JSON.

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
    let expecting = "a whole number, by itself or in quotes";
    let visitor = NumberVisitor { expecting, float: whole_float, text: whole_text };
    let number = deserializer.deserialize_any(visitor)?;
    T::try_from(number).map_err(|_| D::Error::custom("a number is negative or too large"))
}

/// Reads a unit by its name or its number; `null` is `UNKNOWN`.
pub(super) fn unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let expecting = "the name or the number of a unit";
    let visitor = NumberVisitor { expecting, float: |_| None, text: unit_number };
    let number = deserializer.deserialize_any(visitor)?;
    i32::try_from(number).map_err(|_| D::Error::custom("there is no such unit"))
}

/// A whole number as JavaScript may write it, with a point or an exponent.
fn whole_float(number: f64) -> Option<i128> {
    // No field can hold a larger number.
    (number.trunc() == number && number.abs() < 1e20).then_some(number as i128)
}

fn whole_text(text: &str) -> Option<i128> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && text.bytes().all(is_digit);
    let text = is_number.then_some(text)?;
    text.parse().ok().or_else(|| whole_float(text.parse().ok()?))
}

/// The number of a unit. Files accept names in any case, messages only in upper case.
fn unit_number(name: &str) -> Option<i128> {
    let unit = Unit::ALL.into_iter().find(|unit| unit.name() == name);
    unit.map(|unit| unit as i128).or((name == "UNKNOWN").then_some(0))
}

/// Reads a number, or a string with a number.
struct NumberVisitor {
    expecting: &'static str,
    float: fn(f64) -> Option<i128>,
    text: fn(&str) -> Option<i128>,
}

impl Visitor<'_> for NumberVisitor {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
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
        (self.float)(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i128, E> {
        (self.text)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests;
