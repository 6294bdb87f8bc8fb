//! The profiles with one header for each number.

use super::error::{FieldError, FieldErrorKind};
use super::list::policies;
use super::value::{count, digits_saturating, seconds_as_us, trim};
use super::{FieldInstant, LimitItem, MAX_FIELD_BYTES, ParsedHeaders, PolicyItem};
use crate::header::profile::name;
use crate::header::{Profile, Scope};
use alloc::vec::Vec;

/// Reads the headers of `profile` from lines that all belong to it.
pub(super) fn parse(
    profile: Profile,
    lines: &[(&'static str, &str)],
) -> Result<ParsedHeaders, FieldError> {
    let is_unprefixed = matches!(profile, Profile::Draft6 | Profile::RateLimit);
    let [policy, limit, remaining, reset] = if is_unprefixed {
        [name::POLICY, name::LIMIT, name::REMAINING, name::RESET]
    } else {
        [name::X_POLICY, name::X_LIMIT, name::X_REMAINING, name::X_RESET]
    };
    let of_policy = lines.iter().filter(|line| line.0 == policy).map(|&(_, value)| value);
    let mut parsed = ParsedHeaders { policies: policies(policy, of_policy)?, limits: Vec::new() };

    let shown_limit = read_limit(limit, lines, &mut parsed.policies)?;
    let mut shown_reset = read(lines, reset, "seconds", seconds_as_us)?.map(match profile {
        Profile::Draft6 | Profile::RateLimit | Profile::XRateLimitDelta => FieldInstant::AfterUs,
        _ => FieldInstant::AtUs,
    });
    // A delay does not depend on clocks, so Discord's second form of the reset is preferred.
    if let Some(after_us) = read(lines, name::X_RESET_AFTER, "seconds", seconds_as_us)? {
        shown_reset = Some(FieldInstant::AfterUs(after_us));
    }
    let text =
        |field| read(lines, field, "text", |text| Some(text).filter(|text| !text.is_empty()));
    let (resource, bucket, scope) =
        (text(name::X_RESOURCE)?, text(name::X_BUCKET)?, text(name::X_SCOPE)?);
    if let Some(remaining) = read(lines, remaining, "a count", count)? {
        parsed.limits.push(LimitItem {
            name: resource.map(Into::into),
            limit: shown_limit,
            remaining,
            reset: shown_reset,
            partition: None,
            bucket: bucket.map(Into::into),
            scope: scope.and_then(Scope::parse),
        });
    }
    Ok(parsed)
}

/// Reads the limit. Early drafts, and Envoy to this day, append the policies to it.
fn read_limit(
    field: &'static str,
    lines: &[(&'static str, &str)],
    all: &mut Vec<PolicyItem>,
) -> Result<Option<u64>, FieldError> {
    let Some(value) = single(lines, field)? else { return Ok(None) };
    if let Some(limit) = digits_saturating(value) {
        return Ok(Some(limit));
    }
    let mut listed = policies(field, [value])?.into_iter();
    let first = listed.next().filter(|first| first.name.is_none() && first.window_s.is_none());
    let kind = FieldErrorKind::Expected("a count");
    let limit = first.ok_or(FieldError { field, kind, at: 0 })?.quota;
    all.extend(listed);
    Ok(Some(limit))
}

fn read<'a, T>(
    lines: &[(&'static str, &'a str)],
    field: &'static str,
    what: &'static str,
    read: impl Fn(&'a str) -> Option<T>,
) -> Result<Option<T>, FieldError> {
    let wrong = FieldError { field, kind: FieldErrorKind::Expected(what), at: 0 };
    single(lines, field)?.map(|value| read(value).ok_or(wrong)).transpose()
}

/// Returns the value of a header that has a single one.
fn single<'a>(
    lines: &[(&'static str, &'a str)],
    field: &'static str,
) -> Result<Option<&'a str>, FieldError> {
    let mut values = lines.iter().filter(|line| line.0 == field);
    let error = |kind| Err(FieldError { field, kind, at: 0 });
    match (values.next(), values.next()) {
        (_, Some(_)) => error(FieldErrorKind::Repeated),
        (Some((_, value)), None) if value.len() > MAX_FIELD_BYTES => error(FieldErrorKind::TooLong),
        (first, None) => Ok(first.map(|&(_, value)| trim(value))),
    }
}
