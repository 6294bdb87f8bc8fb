//! Reading a request: the body of a check API call, or a row of `simulate`'s input, which is a body
//! with an instant and an operation.
//!
//! One pass, nothing copied that can be borrowed, and nothing kept of what is refused. The shape is
//! two levels deep and no value of another shape is ever entered, so no input can nest the reader.

mod fast;
mod fault;
mod member;
mod number;
mod serde_reader;

pub use fault::{BadRequest, Fault};
pub use member::{Member, MemberSet};

use serde::de::DeserializeSeed;
use serde_reader::{BodySeed, ReadFailure};
use std::borrow::Cow;

/// The largest body, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// The most attributes.
pub const ATTRIBUTES_MAX: usize = 64;
/// The longest attribute name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// The longest attribute value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4 * 1024;
/// The longest reservation, in bytes.
pub const RESERVATION_BYTES_MAX: usize = 512;

/// What a body or a row says. Text is borrowed from the input unless an escape had to be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Body<'a> {
    /// `attributes`: as sent, in the order sent, each name once.
    pub attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// `cost`.
    pub cost: Option<u64>,
    /// `ttl`, in microseconds.
    pub ttl_us: Option<u64>,
    /// `reservation`.
    pub reservation: Option<Cow<'a, str>>,
    /// `time`, in microseconds since the epoch.
    pub time_us: Option<u64>,
    /// `op`.
    pub op: Option<Op>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Decide and consume.
    #[default]
    Check,
    /// Decide and consume nothing.
    Peek,
    /// Decide, consume, and say later what it really was.
    Reserve,
    /// Say what a reservation really was.
    Settle,
    /// Give a reservation back.
    Cancel,
}

impl Op {
    /// Every operation.
    pub const ALL: [Self; 5] = [Self::Check, Self::Peek, Self::Reserve, Self::Settle, Self::Cancel];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Peek => "peek",
            Self::Reserve => "reserve",
            Self::Settle => "settle",
            Self::Cancel => "cancel",
        }
    }
}

/// Reads the body of a call to `op`: exactly the members that the operation has.
pub fn body(input: &[u8], op: Op) -> Result<Body<'_>, BadRequest> {
    let body = read(input, MemberSet::for_op(op))?;
    if matches!(op, Op::Settle | Op::Cancel) && body.reservation.is_none() {
        return Err(Fault::Missing.at(Member::Reservation.as_str()));
    }
    if op == Op::Settle && body.cost.is_none() {
        return Err(Fault::Missing.at(Member::Cost.as_str()));
    }
    Ok(body)
}

/// Reads a row of `simulate`. Attributes and a cost may stand in any row, since a file that gives
/// each of its rows the same members is no mistake; `ttl` and `reservation` only where they mean
/// something.
pub fn row(input: &[u8]) -> Result<Row<'_>, BadRequest> {
    let body = read(input, MemberSet::ALL)?;
    let op = body.op.unwrap_or_default();
    let time_us = body.time_us.ok_or_else(|| Fault::Missing.at(Member::Time.as_str()))?;
    let refused = |member: Member| Err(Fault::NotForThisOp(op).at(member.as_str()));
    let missing = |member: Member| Err(Fault::Missing.at(member.as_str()));
    match op {
        Op::Check | Op::Peek if body.reservation.is_some() => refused(Member::Reservation),
        Op::Settle | Op::Cancel if body.reservation.is_none() => missing(Member::Reservation),
        Op::Settle if body.cost.is_none() => missing(Member::Cost),
        Op::Check | Op::Peek | Op::Settle | Op::Cancel if body.ttl_us.is_some() => {
            refused(Member::Ttl)
        }
        _ => Ok(Row { time_us, op, body }),
    }
}

/// A row of `simulate`: a body, when it came, and what it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// `time`, in microseconds since the epoch.
    pub time_us: u64,
    /// `op`; a check unless it says otherwise.
    pub op: Op,
    /// The rest.
    pub body: Body<'a>,
}

fn read(input: &[u8], allowed: MemberSet) -> Result<Body<'_>, BadRequest> {
    if input.len() > BODY_BYTES_MAX {
        return Err(Fault::TooLarge.into());
    }
    let input = str::from_utf8(input).map_err(|error| Fault::NotUtf8(error.valid_up_to()))?;
    match fast::read(input, allowed) {
        Some(body) => Ok(body),
        None => read_with_serde(input, allowed),
    }
}

/// Reads whatever is valid, and finds what is wrong with anything else.
#[cold]
fn read_with_serde(input: &str, allowed: MemberSet) -> Result<Body<'_>, BadRequest> {
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

#[cfg(test)]
mod tests;
