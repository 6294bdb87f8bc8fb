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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Too many bytes.
    TooLarge,
    /// Not UTF-8 at this byte.
    NotUtf8(usize),
    /// Not JSON, or more than one JSON value.
    NotJson(Box<str>),
    /// JSON of the wrong type.
    Type(Box<str>),
    /// An unknown member; has the known ones.
    Unknown(MemberSet),
    /// A member given twice.
    Repeated,
    /// A required member is missing.
    Missing,
    /// A member of another operation.
    NotForThisOp(Op),
    /// An operation that does not exist.
    NoSuchOp,
    /// A cost below zero.
    Negative,
    /// A cost with a fraction, or above the largest integer.
    NotAnInteger,
    /// An instant that is not a number.
    TimeNotANumber,
    /// An instant before 1970.
    TimeNegative,
    /// An instant after the year 2255.
    TimeTooLate,
    /// An instant that is not a whole number of microseconds.
    TimeTooFine,
    /// An invalid time to live.
    NotADuration(Box<str>),
    /// A time to live of zero, or of more than an hour.
    TtlOutOfRange,
    /// Too many attributes.
    TooManyAttributes,
    /// An attribute without a name.
    NameEmpty,
    /// An attribute name that is too long.
    NameTooLong,
    /// An attribute value that is too long.
    ValueTooLong,
    /// A reservation id that is empty or too long.
    ReservationLength,
    /// A latency that is not a number of seconds, or more than an hour.
    Latency,
    /// An unknown outcome.
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

fn names<'a>(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'a str>) -> fmt::Result {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    f.write_str(&names.join(", "))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "larger than {BODY_BYTES_MAX} bytes"),
            Self::NotUtf8(valid) => write!(f, "not JSON: not UTF-8 after byte {valid}"),
            Self::NotJson(what) => write!(f, "not JSON: {what}"),
            Self::Type(what) => f.write_str(what),
            Self::Unknown(known) => {
                f.write_str("unknown member; the members are ")?;
                let known = Member::ALL.into_iter().filter(|member| known.has(*member));
                names(f, known.map(Member::as_str))
            }
            Self::Repeated => f.write_str("given twice; name it once"),
            Self::Missing => f.write_str("missing; this operation needs it"),
            Self::NotForThisOp(op) => {
                write!(f, "not a member of `{}`; remove it or change `op`", op.as_str())
            }
            Self::NoSuchOp => {
                f.write_str("unknown operation; use one of ")?;
                names(f, Op::ALL.into_iter().map(Op::as_str))
            }
            Self::Negative => f.write_str("negative; a cost is 0 or more"),
            Self::NotAnInteger => {
                write!(f, "not a whole number from 0 to {}", u64::MAX)
            }
            Self::TimeNotANumber => {
                f.write_str("not a number; time is in seconds since 1970, such as 1700000000.25")
            }
            Self::TimeNegative => f.write_str("negative; time starts at 0, in seconds since 1970"),
            Self::TimeTooLate => {
                f.write_str("too late; time ends at 9007199254.740991, in seconds since 1970")
            }
            Self::TimeTooFine => f.write_str("finer than a microsecond; use at most six decimals"),
            Self::NotADuration(why) => f.write_str(why),
            Self::TtlOutOfRange => f.write_str("out of range; a reservation lives from 1ms to 1h"),
            Self::TooManyAttributes => write!(f, "more than {ATTRIBUTES_MAX} attributes"),
            Self::NameEmpty => f.write_str("an attribute without a name"),
            Self::NameTooLong => write!(f, "a name longer than {NAME_BYTES_MAX} bytes"),
            Self::ValueTooLong => write!(f, "a value longer than {VALUE_BYTES_MAX} bytes"),
            Self::ReservationLength => {
                write!(f, "a reservation has from 1 to {RESERVATION_BYTES_MAX} bytes")
            }
            Self::Latency => {
                f.write_str("not a time; a latency is from 0 to 3600 seconds, such as 0.012")
            }
            Self::NoSuchOutcome => f.write_str("unknown outcome; use `ok` or `overloaded`"),
        }
    }
}

impl std::error::Error for BadRequest {}

#[cfg(test)]
mod tests;
