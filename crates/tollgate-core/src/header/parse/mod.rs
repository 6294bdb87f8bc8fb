//! Parses RateLimit headers. The input comes from a peer: each field is capped, a malformed one
//! is an error to be ignored by the client, and nothing panics.

mod error;
mod legacy;
mod list;
mod scan;
#[cfg(test)]
mod tests;
mod value;

use super::profile::name;
use super::{Profile, Scope, Unit};
use alloc::{string::String, vec::Vec};

pub use error::{FieldError, FieldErrorKind};
pub use list::{parse_policy, parse_ratelimit};
pub(super) use value::{digits_saturating, trim};

/// The most members read from one field.
pub const MAX_MEMBERS: usize = 64;

/// The most bytes read from one field, all its lines together.
pub const MAX_FIELD_BYTES: usize = 8 * 1024;

/// What the fields of one answer said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedHeaders {
    /// The quotas and their windows.
    pub policies: Vec<PolicyItem>,
    /// What is left of them.
    pub limits: Vec<LimitItem>,
}

/// A quota, from `RateLimit-Policy` or `X-RateLimit-Policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyItem {
    /// The policy's name; policies had none before draft -08.
    pub name: Option<String>,
    /// The quota in units, `q`.
    pub quota: u64,
    /// What is counted, `qu`; `None` for a unit that is not known here.
    pub unit: Option<Unit>,
    /// The window in seconds, `w`; never zero.
    pub window_s: Option<u64>,
    /// The partition key, `pk`.
    pub partition: Option<Vec<u8>>,
}

/// What is left of a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitItem {
    /// The policy's name, or GitHub's resource.
    pub name: Option<String>,
    /// The quota, in the generations that repeat it here.
    pub limit: Option<u64>,
    /// Units available: `r`, or `a` as a pending change to the draft has it.
    pub remaining: u64,
    /// When there will be more (`t`, or `w` as in that pending change), or the reset of an older
    /// generation.
    pub reset: Option<FieldInstant>,
    /// The partition key, `pk`.
    pub partition: Option<Vec<u8>>,
    /// Discord's bucket.
    pub bucket: Option<String>,
    /// Discord's scope, on refusals; `None` also for one that is not known here.
    pub scope: Option<Scope>,
}

/// A point in time, as the field gave it. Values beyond the end of time are that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldInstant {
    /// Microseconds after the answer.
    AfterUs(u64),
    /// Microseconds since the Unix epoch, by the server's clock.
    AtUs(u64),
}

impl FieldInstant {
    /// The wait from `now_us`; zero when the instant has passed.
    pub const fn after_us(self, now_us: u64) -> u64 {
        match self {
            Self::AfterUs(us) => us,
            Self::AtUs(at_us) => at_us.saturating_sub(now_us),
        }
    }
}

/// Reads the fields of `profile` among `headers`, names compared without case, other fields
/// ignored. The profile also says what `X-RateLimit-Reset` means, which the field itself does not.
///
/// An absent field says nothing and is no error. A malformed one is an error for all, since numbers
/// out of half an answer mislead; so is a second line of a field that holds one value.
pub fn parse<'a>(
    profile: Profile,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<ParsedHeaders, FieldError> {
    let mut lines: Vec<(&'static str, &'a str)> = Vec::new();
    for (header, value) in headers {
        let known = profile.fields().iter().find(|field| field.eq_ignore_ascii_case(header));
        if let Some(field) = known {
            // Enough for every field of any profile, each with as many lines as members.
            if lines.len() >= MAX_MEMBERS * profile.fields().len() {
                return Err(FieldError { field, kind: FieldErrorKind::TooManyMembers, at: 0 });
            }
            lines.push((field, value));
        }
    }
    let values = |field: &'static str| {
        lines.iter().filter(move |line| line.0 == field).map(|&(_, value)| value)
    };
    match profile {
        Profile::Draft11 | Profile::Draft7 => Ok(ParsedHeaders {
            policies: parse_policy(values(name::POLICY))?,
            limits: parse_ratelimit(values(name::RATELIMIT))?,
        }),
        _ => legacy::parse(profile, &lines),
    }
}
