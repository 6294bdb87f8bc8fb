//! Decodes the bodies of calls. The decoder of the check API reads the attributes, with its caps.

use super::explain::parse_peer;
use super::route::BodyMembers;
use crate::front::http::decode::{self, BODY_BYTES_MAX, Fault, Op};
use crate::front::problem::Problem;
use crate::node::modes::{OverrideScope, parse_mode};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use tollgate_policy::limit::Mode;
use tollgate_policy::parse_duration_us;

/// The longest block; equal to the longest period.
const BLOCK_US_MAX: u64 = 366 * 86_400_000_000;
/// Limit of names; longer than any limit's name.
const NAME_BYTES_MAX: usize = 4 * 1024;

/// The members of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AdminBody {
    pub(super) attributes: Vec<(String, String)>,
    pub(super) limit: Option<String>,
    pub(super) for_us: Option<u64>,
    pub(super) mode: Option<Mode>,
    pub(super) cost: Option<u64>,
    pub(super) peer: Option<IpAddr>,
}

/// Decodes the body of a call. The body may be empty if the call has no members.
pub(super) fn body(input: &[u8], expected: BodyMembers) -> Result<AdminBody, Problem> {
    let BodyMembers { allowed, required } = expected;
    if input.len() > BODY_BYTES_MAX {
        return Err(Fault::TooLarge.into());
    }
    if input.is_empty() && allowed.is_empty() {
        return Ok(AdminBody::default());
    }
    let input = str::from_utf8(input).map_err(|error| Fault::NotUtf8(error.valid_up_to()))?;
    let members = members(input)?;
    let mut body = AdminBody::default();
    for (at, (name, value)) in members.iter().enumerate() {
        if !allowed.contains(&&**name) {
            return Err(Problem::bad(name, unknown_member(allowed)));
        }
        if members[..at].iter().any(|(other, _)| other == name) {
            return Err(Fault::Repeated.at(&**name).into());
        }
        read_member(name, value.get(), &mut body)?;
    }
    let given = |name: &str| members.iter().any(|(other, _)| other == name);
    match required.iter().find(|name| !given(name)) {
        Some(missing) => Err(Fault::Missing.at(*missing).into()),
        None => Ok(body),
    }
}

fn unknown_member(allowed: &[&str]) -> String {
    match allowed {
        [] => "unknown member; this call takes none".to_owned(),
        _ => {
            let known: Vec<String> = allowed.iter().map(|name| format!("`{name}`")).collect();
            format!("unknown member; the members are {}", known.join(", "))
        }
    }
}

fn read_member(name: &str, value: &str, body: &mut AdminBody) -> Result<(), Problem> {
    match name {
        "attributes" => {
            body.attributes = read_attributes(value)?;
        }
        "peer" => body.peer = Some(parse_peer(&text(name, value)?)?),
        "cost" => {
            let wrapped = format!("{{\"attributes\":{{}},\"cost\":{value}}}");
            body.cost = decode::body(wrapped.as_bytes(), Op::Peek)?.cost;
        }
        "limit" => {
            let limit = text(name, value)?;
            if limit.is_empty() || limit.len() > NAME_BYTES_MAX {
                return Err(Problem::bad(name, "not the name of a limit"));
            }
            body.limit = Some(limit);
        }
        "for" => {
            let duration_us = parse_duration_us(&text(name, value)?)
                .map_err(|why| Problem::bad(name, why.to_string()))?;
            if !(1_000..=BLOCK_US_MAX).contains(&duration_us) {
                let detail = "out of range; a block lasts from 1ms to 366d";
                return Err(Problem::bad(name, detail));
            }
            body.for_us = Some(duration_us);
        }
        _ => {
            let word = text(name, value)?;
            let detail = "unknown mode; use `enforce`, `shadow` or `off`";
            body.mode = Some(parse_mode(&word).ok_or_else(|| Problem::bad(name, detail))?);
        }
    }
    Ok(())
}

/// Reads attributes like the check API, from the text of a JSON object.
fn read_attributes(object: &str) -> Result<Vec<(String, String)>, Problem> {
    let wrapped = format!("{{\"attributes\":{object}}}");
    let read = decode::body(wrapped.as_bytes(), Op::Peek)?;
    let owned =
        |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
    Ok(read.attributes.into_iter().map(owned).collect())
}

/// The attributes in a query, within the caps of the check API.
pub(super) fn attributes_of(
    parameters: Vec<(String, String)>,
) -> Result<Vec<(String, String)>, Problem> {
    let object: Map<String, Value> =
        parameters.into_iter().map(|(name, value)| (name, value.into())).collect();
    read_attributes(&Value::Object(object).to_string())
}

/// The scope of a mode change, from the query of the call.
pub(super) fn scope(query: Option<&str>) -> Result<Option<OverrideScope>, Problem> {
    match query {
        None | Some("") => Ok(None),
        Some("scope=fleet") => Ok(Some(OverrideScope::Fleet)),
        Some("scope=node") => Ok(Some(OverrideScope::Node)),
        Some(_) => {
            Err(Problem::bad("scope", "write `?scope=fleet` or `?scope=node`, and nothing else"))
        }
    }
}

fn text(name: &str, value: &str) -> Result<String, Problem> {
    serde_json::from_str(value).map_err(|_| Problem::bad(name, "not a string"))
}

/// The members of an object, with unparsed values.
fn members(input: &str) -> Result<Vec<(String, &RawValue)>, Problem> {
    let mut reader = serde_json::Deserializer::from_str(input);
    let read = reader
        .deserialize_map(RawMembersVisitor)
        .and_then(|members| reader.end().map(|()| members));
    read.map_err(|error| {
        let what = if error.is_data() { "not an object of known members" } else { "not JSON" };
        Problem::bad("body", format!("{what}: {error}"))
    })
}

struct RawMembersVisitor;

impl<'de> Visitor<'de> for RawMembersVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(entry) = map.next_entry()? {
            members.push(entry);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests;
