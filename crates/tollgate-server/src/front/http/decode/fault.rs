//! Faults of a body or a row.

use super::{
    ATTRIBUTES_MAX, BODY_BYTES_MAX, Member, MemberSet, NAME_BYTES_MAX, Op, RESERVATION_BYTES_MAX,
    VALUE_BYTES_MAX,
};
use std::borrow::Cow;
use std::fmt;

/// Limit of input bytes in a message.
const QUOTED_BYTES_MAX: usize = 256;

/// An invalid body or row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadRequest {
    /// The invalid member, such as `cost` or `attributes.user`; `None` if the whole is invalid.
    pub field: Option<Box<str>>,
    /// The fault.
    pub fault: Fault,
}

/// The fault of a body or a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Too many bytes.
    #[error("larger than {BODY_BYTES_MAX} bytes")]
    TooLarge,
    /// Not UTF-8 at this byte.
    #[error("not JSON: not UTF-8 after byte {0}")]
    NotUtf8(usize),
    /// Not JSON, or more than one JSON value.
    #[error("not JSON: {0}")]
    NotJson(Box<str>),
    /// JSON of the wrong type.
    #[error("{0}")]
    Type(Box<str>),
    /// An unknown member; has the known ones.
    #[error("unknown member; the members are {}", quoted(.0.members().map(Member::as_str)))]
    Unknown(MemberSet),
    /// A member given twice.
    #[error("given twice; name it once")]
    Repeated,
    /// A required member is missing.
    #[error("missing; this operation needs it")]
    Missing,
    /// A member of another operation.
    #[error("not a member of `{}`; remove it or change `op`", .0.as_str())]
    NotForThisOp(Op),
    /// An operation that does not exist.
    #[error("unknown operation; use one of {}", quoted(Op::ALL.into_iter().map(Op::as_str)))]
    NoSuchOp,
    /// A cost below zero.
    #[error("negative; a cost is 0 or more")]
    Negative,
    /// A cost with a fraction, or above the largest integer.
    #[error("not a whole number from 0 to {}", u64::MAX)]
    NotAnInteger,
    /// An instant that is not a number.
    #[error("not a number; time is in seconds since 1970, such as 1700000000.25")]
    TimeNotANumber,
    /// An instant before 1970.
    #[error("negative; time starts at 0, in seconds since 1970")]
    TimeNegative,
    /// An instant after the year 2255.
    #[error("too late; time ends at 9007199254.740991, in seconds since 1970")]
    TimeTooLate,
    /// An instant that is not a whole number of microseconds.
    #[error("finer than a microsecond; use at most six decimals")]
    TimeTooFine,
    /// An invalid time to live.
    #[error("{0}")]
    NotADuration(Box<str>),
    /// A time to live of zero, or of more than an hour.
    #[error("out of range; a reservation lives from 1ms to 1h")]
    TtlOutOfRange,
    /// Too many attributes.
    #[error("more than {ATTRIBUTES_MAX} attributes")]
    TooManyAttributes,
    /// An attribute without a name.
    #[error("an attribute without a name")]
    NameEmpty,
    /// An attribute name that is too long.
    #[error("a name longer than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    /// An attribute value that is too long.
    #[error("a value longer than {VALUE_BYTES_MAX} bytes")]
    ValueTooLong,
    /// A reservation id that is empty or too long.
    #[error("a reservation has from 1 to {RESERVATION_BYTES_MAX} bytes")]
    ReservationLength,
    /// A latency that is not a number of seconds, or more than an hour.
    #[error("not a time; a latency is from 0 to 3600 seconds, such as 0.012")]
    Latency,
    /// An unknown outcome.
    #[error("unknown outcome; use `ok` or `overloaded`")]
    NoSuchOutcome,
}

impl Fault {
    /// Makes this the fault of a member.
    pub fn at(self, field: impl Into<Box<str>>) -> BadRequest {
        BadRequest { field: Some(field.into()), fault: self }
    }

    /// The fault for an error of the JSON reader. Names the line only in a body of several lines.
    pub(super) fn from_json_error(error: &serde_json::Error) -> Self {
        // "ident" is the reader's word for `true`, `false` and `null`.
        let text = error.to_string().replacen("expected ident", "expected a value", 1);
        let (line, column) = (error.line(), error.column());
        let what = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        match (error.is_data(), line) {
            (true, _) => Self::Type(shortened(what).into()),
            (false, 0 | 1) => Self::NotJson(format!("{what} at column {column}").into()),
            (false, _) => Self::NotJson(text.into()),
        }
    }
}

/// An error text of the JSON reader, shortened and without the string, which may be secret. The
/// expected type stays.
fn shortened(what: &str) -> Cow<'_, str> {
    let expected = what.rfind(", expected ").map_or("", |at| &what[at..]);
    if let Some(at) = what.find("string \"") {
        return Cow::Owned(format!("{}string{expected}", &what[..at]));
    }
    if what.len() <= QUOTED_BYTES_MAX {
        return Cow::Borrowed(what);
    }
    let met = &what[..what.floor_char_boundary(QUOTED_BYTES_MAX / 2)];
    let expected = if expected.len() <= QUOTED_BYTES_MAX / 2 { expected } else { "" };
    Cow::Owned(format!("{met}...{expected}"))
}

impl From<Fault> for BadRequest {
    fn from(fault: Fault) -> Self {
        Self { field: None, fault }
    }
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => {
                // Escapes make the text longer.
                let shown: String = field.escape_debug().take(QUOTED_BYTES_MAX).collect();
                write!(f, "`{shown}`: {}", self.fault)
            }
            None => self.fault.fmt(f),
        }
    }
}

fn quoted(names: impl Iterator<Item = &'static str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl std::error::Error for BadRequest {}

#[cfg(test)]
mod tests;
