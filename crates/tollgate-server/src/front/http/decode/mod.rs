//! Decodes bodies of the check API and rows of `simulate`. A row is a body with a time and an
//! operation.

mod fault;
mod number;
mod reader;

pub use fault::{BadRequest, Fault};

use smallvec::SmallVec;
use std::borrow::Cow;
use tollgate::engine::UpstreamOutcome;

/// Limit of a body, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Limit of attributes.
pub const ATTRIBUTES_MAX: usize = 64;
/// Limit of an attribute name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Limit of an attribute value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4 * 1024;
/// Limit of a reservation id, in bytes.
pub const RESERVATION_BYTES_MAX: usize = 512;

/// Names and values. A request with few of them allocates nothing.
pub type Attributes<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>;

/// A body or a row. Text is borrowed from the input unless it has escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Body<'a> {
    /// `attributes`, in the order sent, each name once.
    pub attributes: Attributes<'a>,
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
    /// `latency`, in microseconds.
    pub latency_us: Option<u64>,
    /// `outcome`.
    pub outcome: Option<UpstreamOutcome>,
}

/// An operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Decide and charge.
    #[default]
    Check,
    /// Decide without charging.
    Peek,
    /// Decide and charge; the actual cost follows.
    Reserve,
    /// End a reservation with its actual cost.
    Settle,
    /// End a reservation and refund it.
    Cancel,
}

impl Op {
    /// Every operation.
    pub const ALL: [Self; 5] = [Self::Check, Self::Peek, Self::Reserve, Self::Settle, Self::Cancel];

    /// The name on the wire.
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

/// A member of a body or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is named as the member that `Body` describes")]
pub enum Member {
    Time,
    Op,
    Attributes,
    Cost,
    Ttl,
    Reservation,
    Latency,
    Outcome,
}

impl Member {
    /// Every member.
    pub const ALL: [Self; 8] = [
        Self::Time,
        Self::Op,
        Self::Attributes,
        Self::Cost,
        Self::Ttl,
        Self::Reservation,
        Self::Latency,
        Self::Outcome,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Op => "op",
            Self::Attributes => "attributes",
            Self::Cost => "cost",
            Self::Ttl => "ttl",
            Self::Reservation => "reservation",
            Self::Latency => "latency",
            Self::Outcome => "outcome",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        // A search through `ALL` would cost as much as decoding the member.
        Some(match name {
            "time" => Self::Time,
            "op" => Self::Op,
            "attributes" => Self::Attributes,
            "cost" => Self::Cost,
            "ttl" => Self::Ttl,
            "reservation" => Self::Reservation,
            "latency" => Self::Latency,
            "outcome" => Self::Outcome,
            _ => return None,
        })
    }
}

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberSet(u8);

impl MemberSet {
    /// All members, which a row may have.
    pub const ALL: Self = Self(u8::MAX);

    /// The members of a call.
    pub const fn for_op(op: Op) -> Self {
        let none = Self(0);
        match op {
            Op::Check | Op::Peek => none.with(Member::Attributes).with(Member::Cost),
            Op::Reserve => none.with(Member::Attributes).with(Member::Cost).with(Member::Ttl),
            Op::Settle => none
                .with(Member::Reservation)
                .with(Member::Cost)
                .with(Member::Latency)
                .with(Member::Outcome),
            Op::Cancel => none.with(Member::Reservation),
        }
    }

    pub(super) const fn with(self, member: Member) -> Self {
        Self(self.0 | 1 << member as u8)
    }

    pub(super) const fn has(self, member: Member) -> bool {
        self.0 & (1 << member as u8) != 0
    }

    fn members(self) -> impl Iterator<Item = Member> {
        Member::ALL.into_iter().filter(move |member| self.has(*member))
    }
}

/// Decodes the body of a call to `op`, with exactly its members.
pub fn body(input: &[u8], op: Op) -> Result<Body<'_>, BadRequest> {
    let mut body = Body::default();
    read_body(input, op, &mut body).map(|()| body)
}

/// Decodes the body of a call to `op` into an empty `body`.
pub fn read_body<'a>(input: &'a [u8], op: Op, body: &mut Body<'a>) -> Result<(), BadRequest> {
    read(input, MemberSet::for_op(op), body)?;
    if matches!(op, Op::Settle | Op::Cancel) && body.reservation.is_none() {
        return Err(Fault::Missing.at(Member::Reservation.as_str()));
    }
    if op == Op::Settle && body.cost.is_none() {
        return Err(Fault::Missing.at(Member::Cost.as_str()));
    }
    Ok(())
}

/// Decodes a row of `simulate`. Any row may have attributes and a cost, so that all rows of a file
/// can have the same members. `ttl` and `reservation` need an operation that uses them.
pub fn row(input: &[u8]) -> Result<Row<'_>, BadRequest> {
    let mut body = Body::default();
    read(input, MemberSet::ALL, &mut body)?;
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
        _ if op != Op::Settle && body.latency_us.is_some() => refused(Member::Latency),
        _ if op != Op::Settle && body.outcome.is_some() => refused(Member::Outcome),
        _ => Ok(Row { time_us, op, body }),
    }
}

/// A row of `simulate`: a time, an operation and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// `time`, in microseconds since the epoch.
    pub time_us: u64,
    /// `op`; a check by default.
    pub op: Op,
    /// The other members.
    pub body: Body<'a>,
}

fn read<'a>(input: &'a [u8], allowed: MemberSet, body: &mut Body<'a>) -> Result<(), BadRequest> {
    if input.len() > BODY_BYTES_MAX {
        return Err(Fault::TooLarge.into());
    }
    let input = str::from_utf8(input).map_err(|error| Fault::NotUtf8(error.valid_up_to()))?;
    reader::read(input, allowed, body)
}

#[cfg(test)]
mod tests;
