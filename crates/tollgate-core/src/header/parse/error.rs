//! Errors in headers.

use core::fmt;

/// The error for a header that must be ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// The name of the header.
    pub field: &'static str,
    /// What is wrong.
    pub kind: FieldErrorKind,
    /// The position, in bytes from the start of the line.
    pub at: usize,
}

/// The error of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldErrorKind {
    /// Longer than [`MAX_FIELD_BYTES`](super::MAX_FIELD_BYTES).
    TooLong,
    /// More members than [`MAX_MEMBERS`](super::MAX_MEMBERS).
    TooManyMembers,
    /// Something other than this text was found.
    Expected(&'static str),
    /// A member lacks this required parameter or key.
    Missing(&'static str),
    /// This parameter or key has a value of the wrong type or out of range.
    WrongValue(&'static str),
    /// A header with a single value was sent more than once.
    Repeated,
    /// Neither a delay in seconds nor an HTTP-date.
    NotADelayOrDate,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.field)?;
        match self.kind {
            FieldErrorKind::TooLong => {
                write!(f, "longer than {} bytes", super::MAX_FIELD_BYTES)
            }
            FieldErrorKind::TooManyMembers => {
                write!(f, "more than {} members", super::MAX_MEMBERS)
            }
            FieldErrorKind::Expected(what) => write!(f, "expected {what} at byte {}", self.at),
            FieldErrorKind::Missing(what) => {
                write!(f, "the member at byte {} lacks `{what}`", self.at)
            }
            FieldErrorKind::WrongValue(what) => {
                write!(f, "`{what}` at byte {} has an invalid value", self.at)
            }
            FieldErrorKind::Repeated => f.write_str("sent more than once"),
            FieldErrorKind::NotADelayOrDate => {
                f.write_str("neither a number of seconds nor an HTTP-date")
            }
        }
    }
}

impl core::error::Error for FieldError {}

/// A syntax error, before the name of the header is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldSyntaxError {
    pub(super) kind: FieldErrorKind,
    pub(super) at: usize,
}

impl FieldSyntaxError {
    pub(super) const fn in_field(self, field: &'static str) -> FieldError {
        FieldError { field, kind: self.kind, at: self.at }
    }
}
