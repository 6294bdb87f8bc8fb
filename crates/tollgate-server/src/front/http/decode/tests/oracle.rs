//! The reader's oracle: the same rules, built on serde.

use super::super::{
    ATTRIBUTES_MAX, Attributes, BadRequest, Body, Fault, Member, MemberSet, NAME_BYTES_MAX, Op,
    RESERVATION_BYTES_MAX, VALUE_BYTES_MAX, number,
};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use tollgate::engine::{TTL_US_MAX, UpstreamOutcome};

/// Reads any valid body, and finds the fault of an invalid one.
pub(super) fn read(input: &str, allowed: MemberSet) -> Result<Body<'_>, BadRequest> {
    let mut body = Body::default();
    let mut found = ReadFailure::default();
    let mut reader = serde_json::Deserializer::from_str(input);
    let read = BodySeed { body: &mut body, failure: &mut found, allowed }
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match read {
        Ok(()) => Ok(body),
        Err(error) => Err(BadRequest {
            field: found.field,
            fault: found.fault.unwrap_or_else(|| Fault::from_json_error(&error)),
        }),
    }
}

/// The type of a value that is not a number, as named by the JSON reader.
fn wrong_type(text: &str) -> Fault {
    let found = match text.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'[') => "sequence",
        Some(b'{') => "map",
        Some(b't') => "boolean `true`",
        Some(b'f') => "boolean `false`",
        _ => "null",
    };
    Fault::Type(format!("invalid type: {found}, expected a whole number").into())
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The fault and its member, kept outside serde's error, which carries only text.
#[derive(Debug, Default)]
struct ReadFailure {
    field: Option<Box<str>>,
    /// The fault; `None` if serde's error describes it.
    fault: Option<Fault>,
}

impl ReadFailure {
    fn refuse<E: Error>(&mut self, fault: Fault) -> E {
        self.fault = Some(fault);
        E::custom("")
    }

    fn refuse_at<E: Error>(&mut self, field: &str, fault: Fault) -> E {
        // An answer quotes only a part of the name.
        self.field = Some(field[..field.floor_char_boundary(2 * NAME_BYTES_MAX)].into());
        self.refuse(fault)
    }
}

/// Reads the outer object into `body`.
struct BodySeed<'s, 'de> {
    body: &'s mut Body<'de>,
    failure: &'s mut ReadFailure,
    allowed: MemberSet,
}

impl<'de> DeserializeSeed<'de> for BodySeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BodySeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object such as {\"attributes\": {\"user\": \"42\"}, \"cost\": 1}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { body, failure: found, allowed } = self;
        let mut seen = MemberSet::default();
        while let Some(name) = map.next_key_seed(TextSeed)? {
            let member = match Member::from_name(&name) {
                Some(member) if allowed.has(member) => member,
                _ => return Err(found.refuse_at(&name, Fault::Unknown(allowed))),
            };
            if seen.has(member) {
                return Err(found.refuse_at(&name, Fault::Repeated));
            }
            seen = seen.with(member);
            if let Err(error) = read_member(&mut map, member, body, found) {
                found.field.get_or_insert_with(|| member.as_str().into());
                return Err(error);
            }
        }
        Ok(())
    }
}

fn read_member<'de, A: MapAccess<'de>>(
    map: &mut A,
    member: Member,
    body: &mut Body<'de>,
    found: &mut ReadFailure,
) -> Result<(), A::Error> {
    match member {
        Member::Attributes => {
            let attributes = &mut body.attributes;
            map.next_value_seed(AttributesSeed { attributes, failure: found })?;
        }
        Member::Cost => {
            let raw: &RawValue = map.next_value()?;
            let cost = match raw.get() {
                text if is_number(text) => number::parse_cost(text),
                text => Err(wrong_type(text)),
            };
            body.cost = Some(cost.map_err(|fault| found.refuse(fault))?);
        }
        Member::Ttl => {
            let text = map.next_value_seed(TextSeed)?;
            body.ttl_us = match tollgate_policy::parse_duration_us(&text) {
                Ok(ttl_us @ 1..=TTL_US_MAX) => Some(ttl_us),
                Ok(_) => return Err(found.refuse(Fault::TtlOutOfRange)),
                Err(why) => return Err(found.refuse(Fault::NotADuration(why.into()))),
            };
        }
        Member::Reservation => {
            let reservation = map.next_value_seed(TextSeed)?;
            if reservation.is_empty() || reservation.len() > RESERVATION_BYTES_MAX {
                return Err(found.refuse(Fault::ReservationLength));
            }
            body.reservation = Some(reservation);
        }
        Member::Op => {
            let word = map.next_value_seed(TextSeed)?;
            let op = Op::ALL.into_iter().find(|op| op.as_str() == word);
            body.op = Some(op.ok_or_else(|| found.refuse(Fault::NoSuchOp))?);
        }
        Member::Time => {
            let raw: &RawValue = map.next_value()?;
            let time_us = match raw.get() {
                text if is_number(text) => number::parse_us(text),
                _ => Err(Fault::TimeNotANumber),
            };
            body.time_us = Some(time_us.map_err(|fault| found.refuse(fault))?);
        }
        Member::Latency => {
            let raw: &RawValue = map.next_value()?;
            let latency_us = number::parse_latency_us(raw.get());
            body.latency_us = Some(latency_us.map_err(|fault| found.refuse(fault))?);
        }
        Member::Outcome => {
            body.outcome = Some(match &*map.next_value_seed(TextSeed)? {
                "ok" => UpstreamOutcome::Ok,
                "overloaded" => UpstreamOutcome::Overloaded,
                _ => return Err(found.refuse(Fault::NoSuchOutcome)),
            });
        }
    }
    Ok(())
}

/// Reads the object of attributes.
struct AttributesSeed<'s, 'de> {
    attributes: &'s mut Attributes<'de>,
    failure: &'s mut ReadFailure,
}

impl<'de> DeserializeSeed<'de> for AttributesSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AttributesSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { attributes, failure: found } = self;
        while let Some(name) = map.next_key_seed(TextSeed)? {
            if name.is_empty() {
                return Err(found.refuse(Fault::NameEmpty));
            }
            if name.len() > NAME_BYTES_MAX {
                return Err(found.refuse(Fault::NameTooLong));
            }
            if attributes.len() == ATTRIBUTES_MAX {
                return Err(found.refuse(Fault::TooManyAttributes));
            }
            if attributes.iter().any(|(other, _)| *other == name) {
                return Err(found.refuse_at(&field(&name), Fault::Repeated));
            }
            let value = match map.next_value_seed(TextSeed) {
                Ok(value) => value,
                Err(error) => {
                    found.field = Some(field(&name).into());
                    return Err(error);
                }
            };
            if value.len() > VALUE_BYTES_MAX {
                return Err(found.refuse_at(&field(&name), Fault::ValueTooLong));
            }
            attributes.push((name, value));
        }
        Ok(())
    }
}

/// The name of an attribute in an answer.
fn field(attribute: &str) -> String {
    format!("attributes.{attribute}")
}

/// Reads a string, borrowed unless it has escapes.
struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
