//! The error for limits that do not form a policy.

use std::fmt;

use crate::matcher::InvalidCondition;
use crate::matcher::glob::TOKENS_MAX;

/// Why limits do not form a policy, with the name of the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidPolicy {
    /// More than 2^24 limits.
    TooManyLimits,
    /// More than 65,536 different attributes.
    TooManyAttributes,
    /// An IPv6 prefix above 128 bits.
    Ipv6Prefix(u8),
    /// A pattern for `ip` that is neither an address nor a network.
    Address {
        /// The limit's name.
        limit: Box<str>,
        /// The pattern, as written.
        pattern: String,
    },
    /// A pattern with too many bytes between its first and its last wildcard.
    PatternTooLong {
        /// The limit's name.
        limit: Box<str>,
        /// The pattern, as written.
        pattern: String,
    },
}

impl InvalidPolicy {
    pub(super) fn from_condition(limit: &str, invalid: InvalidCondition) -> Self {
        let limit = limit.into();
        match invalid {
            InvalidCondition::TooManyAttributes => Self::TooManyAttributes,
            InvalidCondition::Address(pattern) => Self::Address { limit, pattern },
            InvalidCondition::PatternTooLong(pattern) => Self::PatternTooLong { limit, pattern },
        }
    }
}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyLimits => f.write_str("a policy has at most 16777216 limits"),
            Self::TooManyAttributes => f.write_str("a policy uses at most 65536 attributes"),
            Self::Ipv6Prefix(prefix) => {
                write!(f, "an IPv6 prefix has at most 128 bits, not {prefix}; 64 is usual")
            }
            Self::Address { limit, pattern } => write!(
                f,
                "limit `{limit}`: `{pattern}` is neither an address nor a network such as 10.0.0.0/8"
            ),
            Self::PatternTooLong { limit, pattern } => write!(
                f,
                "limit `{limit}`: a pattern of {} bytes has more than {TOKENS_MAX} between its wildcards; \
                 split it into several",
                pattern.len()
            ),
        }
    }
}

impl std::error::Error for InvalidPolicy {}
