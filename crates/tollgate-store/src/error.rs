//! Store errors: the store could not decide. A refusal is not an error.

use std::fmt;

/// A store's error: its kind, and the store's message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreError {
    /// The kind of failure.
    pub kind: StoreErrorKind,
    /// The store's message; may be empty.
    pub detail: Box<str>,
}

/// The kind of failure. The names are values of a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No answer in time. Whether anything was charged is unknown.
    Timeout,
    /// The store cannot be reached.
    Unreachable,
    /// Too many requests wait: the store was not called.
    Busy,
    /// The circuit breaker is open: the store was not called.
    BreakerOpen,
    /// The store's reply is malformed.
    Protocol,
    /// The store refuses to serve: credentials, rights or configuration.
    Rejected,
}

impl StoreError {
    /// Creates an error of `kind` with the store's message.
    pub fn new(kind: StoreErrorKind, detail: impl Into<Box<str>>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Whether a retry later may succeed without any change.
    pub const fn is_transient(&self) -> bool {
        match self.kind {
            StoreErrorKind::Timeout
            | StoreErrorKind::Unreachable
            | StoreErrorKind::Busy
            | StoreErrorKind::BreakerOpen => true,
            StoreErrorKind::Protocol | StoreErrorKind::Rejected => false,
        }
    }
}

impl StoreErrorKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Timeout,
        Self::Unreachable,
        Self::Busy,
        Self::BreakerOpen,
        Self::Protocol,
        Self::Rejected,
    ];

    /// The value of the metric label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Busy => "busy",
            Self::BreakerOpen => "breaker_open",
            Self::Protocol => "protocol",
            Self::Rejected => "rejected",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            StoreErrorKind::Timeout => "the store did not answer in time",
            StoreErrorKind::Unreachable => {
                "the store cannot be reached (check that it runs, and its address)"
            }
            StoreErrorKind::Busy | StoreErrorKind::BreakerOpen => "the store was not called",
            StoreErrorKind::Protocol => "the store's reply is malformed",
            StoreErrorKind::Rejected => {
                "the store refuses to serve; check its credentials, rights and memory"
            }
        })?;
        match &*self.detail {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}

impl std::error::Error for StoreError {}
