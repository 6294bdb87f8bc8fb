//! Errors of invalid quotas.

use super::Algorithm;
use std::fmt;
use tollgate_core::InvalidParams;

/// The reason why a quota is invalid. The message suggests a valid one.
///
/// ```
/// use tollgate::Quota;
///
/// let error = Quota::per_second(20).with_burst(0).unwrap_err();
/// let text = "a burst is at least 1; use a rate of 0/... to refuse everything";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidQuota {
    /// A number outside the range in which decisions are exact.
    OutOfRange(InvalidParams),
    /// A duration that is not a whole number of microseconds.
    FractionOfMicrosecond,
    /// This algorithm has no burst.
    NoBurst(Algorithm),
    /// This algorithm has no queue.
    NoQueue(Algorithm),
    /// This algorithm has no time to live.
    NoTtl(Algorithm),
    /// This algorithm needs a rate, but was given slots.
    NoRate(Algorithm),
    /// Concurrency needs slots, but was given a rate.
    NoSlots,
    /// The text is not a quota: the fault, and a correction.
    Unreadable(Box<str>),
}

impl fmt::Display for InvalidQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(invalid) => invalid.fmt(f),
            Self::FractionOfMicrosecond => {
                f.write_str("a duration is a whole number of microseconds")
            }
            Self::NoBurst(algorithm) => {
                write!(f, "{algorithm} knows no burst; choose gcra, token-bucket or leaky-bucket")
            }
            Self::NoQueue(algorithm) => {
                write!(f, "{algorithm} knows no queue; choose leaky-bucket first")
            }
            Self::NoTtl(algorithm) => {
                write!(f, "{algorithm} knows no ttl; that is for concurrency")
            }
            Self::NoRate(algorithm) => {
                write!(f, "{algorithm} needs a rate; begin with per_second or the like")
            }
            Self::NoSlots => f.write_str("concurrency needs slots; begin with Quota::concurrency"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for InvalidQuota {}

impl From<InvalidParams> for InvalidQuota {
    fn from(invalid: InvalidParams) -> Self {
        Self::OutOfRange(invalid)
    }
}
