//! Parses RateLimit headers. The input comes from a peer: the size of each header is capped, a
//! malformed header is an error that the client ignores, and nothing panics.

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

/// The most members read from one header.
pub const MAX_MEMBERS: usize = 64;

/// The most bytes read from one header, over all its lines.
pub const MAX_FIELD_BYTES: usize = 8 * 1024;

/// The parsed headers of one response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedHeaders {
    /// The quotas and their windows.
    pub policies: Vec<PolicyItem>,
    /// The remaining quotas.
    pub limits: Vec<LimitItem>,
}

/// A quota, from `RateLimit-Policy` or `X-RateLimit-Policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyItem {
    /// The name of the policy; policies had none before draft -08.
    pub name: Option<String>,
    /// The quota in units, `q`.
    pub quota: u64,
    /// The unit that is counted, `qu`; `None` for an unknown unit.
    pub unit: Option<Unit>,
    /// The window in seconds, `w`; never zero.
    pub window_s: Option<u64>,
    /// The partition key, `pk`.
    pub partition: Option<Vec<u8>>,
}

/// The rest of a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitItem {
    /// The name of the policy, or GitHub's resource.
    pub name: Option<String>,
    /// The quota, in profiles that repeat it here.
    pub limit: Option<u64>,
    /// The units available: `r`, or `a` in a pending change to the draft.
    pub remaining: u64,
    /// The time until more units are available (`t`, or `w` in the pending change), or the reset of
    /// an older profile.
    pub reset: Option<FieldInstant>,
    /// The partition key, `pk`.
    pub partition: Option<Vec<u8>>,
    /// Discord's bucket.
    pub bucket: Option<String>,
    /// Discord's scope, on refusals; `None` also for an unknown scope.
    pub scope: Option<Scope>,
}

/// An instant as the header gave it. Values are clamped to the end of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldInstant {
    /// Microseconds after the response.
    AfterUs(u64),
    /// Microseconds since the Unix epoch, by the server's clock.
    AtUs(u64),
}

impl FieldInstant {
    /// The time from `now_us`; zero if the instant has passed.
    pub const fn after_us(self, now_us: u64) -> u64 {
        match self {
            Self::AfterUs(us) => us,
            Self::AtUs(at_us) => at_us.saturating_sub(now_us),
        }
    }
}

/// Reads the headers of `profile` among `headers`. Names are compared without case, and other
/// headers are ignored. The profile also determines the meaning of `X-RateLimit-Reset`, which the
/// header itself does not tell.
///
/// An absent header is not an error. A malformed one fails the whole call, since half of the
/// figures would mislead; so does a second line of a header with a single value.
pub fn parse<'a>(
    profile: Profile,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<ParsedHeaders, FieldError> {
    let mut lines: Vec<(&'static str, &'a str)> = Vec::new();
    for (header, value) in headers {
        let known = profile.fields().iter().find(|field| field.eq_ignore_ascii_case(header));
        if let Some(field) = known {
            // Enough for every header of any profile, each with as many lines as members.
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
