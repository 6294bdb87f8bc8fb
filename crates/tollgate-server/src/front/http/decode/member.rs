//! The members that a body or a row can have.

use super::Op;

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
}

impl Member {
    /// Every member.
    pub const ALL: [Self; 6] =
        [Self::Time, Self::Op, Self::Attributes, Self::Cost, Self::Ttl, Self::Reservation];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Op => "op",
            Self::Attributes => "attributes",
            Self::Cost => "cost",
            Self::Ttl => "ttl",
            Self::Reservation => "reservation",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        // A search through `ALL` would cost as much as the rest of a member.
        Some(match name {
            "time" => Self::Time,
            "op" => Self::Op,
            "attributes" => Self::Attributes,
            "cost" => Self::Cost,
            "ttl" => Self::Ttl,
            "reservation" => Self::Reservation,
            _ => return None,
        })
    }
}

/// A set of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberSet(u8);

impl MemberSet {
    /// Every member, as a row may have.
    pub const ALL: Self = Self(u8::MAX);

    /// The members of a call.
    pub const fn for_op(op: Op) -> Self {
        let none = Self(0);
        match op {
            Op::Check | Op::Peek => none.with(Member::Attributes).with(Member::Cost),
            Op::Reserve => none.with(Member::Attributes).with(Member::Cost).with(Member::Ttl),
            Op::Settle => none.with(Member::Reservation).with(Member::Cost),
            Op::Cancel => none.with(Member::Reservation),
        }
    }

    pub(super) const fn with(self, member: Member) -> Self {
        Self(self.0 | 1 << member as u8)
    }

    pub(super) const fn has(self, member: Member) -> bool {
        self.0 & (1 << member as u8) != 0
    }
}
