//! `RateLimit` and `RateLimit-Policy`: lists over one or several header lines.

use super::error::{FieldError, FieldErrorKind, FieldSyntaxError};
use super::scan::{BareItem, Scanner};
use super::value::{bytes, text, uint};
use super::{FieldInstant, LimitItem, MAX_FIELD_BYTES, MAX_MEMBERS, PolicyItem};
use crate::header::profile::name;
use crate::header::{US_PER_S, Unit};
use alloc::vec::Vec;

/// Reads the lines of `RateLimit`: the list of drafts -08 to -11, or the dictionary of draft -07,
/// which is one item without a name. Names may be strings or tokens, parameters `r` and `t` or `a`
/// and `w`; other parameters are ignored.
pub fn parse_ratelimit<'a>(
    values: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<LimitItem>, FieldError> {
    let lines = capped(name::RATELIMIT, values)?;
    if is_dictionary(&lines) {
        let mut entries = Dictionary::default();
        dictionary(name::RATELIMIT, &lines, |key, value| entries.set(key, value))?;
        let item = entries.item().map_err(|fault| fault.in_field(name::RATELIMIT))?;
        return Ok(alloc::vec![item]);
    }
    let mut items = Vec::new();
    members(name::RATELIMIT, &lines, |scanner| {
        let at = scanner.at();
        let first = scanner.item_or_inner_list()?;
        items.push(limit_item(first, at, scanner)?);
        Ok(())
    })?;
    Ok(items)
}

/// Reads the lines of `RateLimit-Policy`: the named items of drafts -08 to -11, or the integers of
/// earlier drafts, as also found in `X-RateLimit-Policy`.
pub fn parse_policy<'a>(
    values: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<PolicyItem>, FieldError> {
    policies(name::POLICY, values)
}

pub(super) fn policies<'a>(
    field: &'static str,
    values: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<PolicyItem>, FieldError> {
    let mut items = Vec::new();
    members(field, &capped(field, values)?, |scanner| {
        items.push(policy_item(scanner)?);
        Ok(())
    })?;
    Ok(items)
}

/// Collects the lines of one header. Fails if they are too many or too long in total.
fn capped<'a>(
    field: &'static str,
    values: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'a str>, FieldError> {
    let (mut length, mut lines) = (0_usize, Vec::new());
    for line in values {
        length = length.saturating_add(line.len());
        if length > MAX_FIELD_BYTES {
            return Err(FieldSyntaxError { kind: FieldErrorKind::TooLong, at: 0 }.in_field(field));
        }
        if lines.len() == MAX_MEMBERS {
            return Err(
                FieldSyntaxError { kind: FieldErrorKind::TooManyMembers, at: 0 }.in_field(field)
            );
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Calls `member` at the start of each member. Lines are treated as joined by commas, so only a
/// header of a single line may be blank (RFC 9651, section 4.2).
pub(super) fn members<'a>(
    field: &'static str,
    lines: &[&'a str],
    mut member: impl FnMut(&mut Scanner<'a>) -> Result<(), FieldSyntaxError>,
) -> Result<(), FieldError> {
    let mut count = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        let mut scanner = Scanner::new(line);
        // Tabs are allowed only after a comma.
        if index == 0 {
            scanner.skip_spaces()
        } else {
            scanner.skip_whitespace()
        }
        if scanner.is_at_end() && lines.len() > 1 {
            return Err(scanner.expected("a member in each line").in_field(field));
        }
        let mut more = !scanner.is_at_end();
        while more {
            count += 1;
            if count > MAX_MEMBERS {
                let fault =
                    FieldSyntaxError { kind: FieldErrorKind::TooManyMembers, at: scanner.at() };
                return Err(fault.in_field(field));
            }
            member(&mut scanner).map_err(|fault| fault.in_field(field))?;
            more = next(&mut scanner).map_err(|fault| fault.in_field(field))?;
        }
    }
    Ok(())
}

/// Calls `entry` with each key and value of a dictionary; a key without a value is a boolean.
pub(super) fn dictionary<'a>(
    field: &'static str,
    lines: &[&'a str],
    mut entry: impl FnMut(&'a str, BareItem<'a>),
) -> Result<(), FieldError> {
    members(field, lines, |scanner| {
        let key = scanner.key()?;
        let value = if scanner.eat(b'=') { scanner.item_or_inner_list()? } else { BareItem::Other };
        entry(key, value);
        scanner.parameters(|_, _| ())
    })
}

/// Whether the value is a dictionary: some member has the form `key=`. A bare token may be in a
/// list or a dictionary.
fn is_dictionary(lines: &[&str]) -> bool {
    let mut found = false;
    // Stops at the first `key=` by returning an error, which is dropped.
    let _ = members(name::RATELIMIT, lines, |scanner| {
        scanner.key()?;
        found = scanner.eat(b'=');
        if found { Err(scanner.expected("nothing more")) } else { scanner.parameters(|_, _| ()) }
    });
    found
}

/// Skips the comma before the next member; false at the end of the line.
fn next(scanner: &mut Scanner<'_>) -> Result<bool, FieldSyntaxError> {
    scanner.skip_whitespace();
    if scanner.is_at_end() {
        return Ok(false);
    }
    if !scanner.eat(b',') {
        return Err(scanner.expected("a comma or the end"));
    }
    scanner.skip_whitespace();
    if scanner.is_at_end() { Err(scanner.expected("a member after the comma")) } else { Ok(true) }
}

fn limit_item(
    first: BareItem<'_>,
    at: usize,
    scanner: &mut Scanner<'_>,
) -> Result<LimitItem, FieldSyntaxError> {
    let name =
        text(first).ok_or(FieldSyntaxError { kind: FieldErrorKind::Expected("a name"), at })?;
    let [mut r, mut t, mut a, mut w, mut pk] = [None; 5];
    scanner.parameters(|key, value| match key {
        "r" => r = Some(value),
        "t" => t = Some(value),
        "a" => a = Some(value),
        "w" => w = Some(value),
        "pk" => pk = Some(value),
        _ => {}
    })?;
    let remaining = required(if r.is_some() { r } else { a }, "r", at, uint)?;
    let reset_s = optional(if t.is_some() { t } else { w }, "t", at, uint)?;
    Ok(LimitItem {
        name: Some(name),
        remaining,
        reset: reset_s.map(|s| FieldInstant::AfterUs(s.saturating_mul(US_PER_S))),
        partition: optional(pk, "pk", at, bytes)?,
        ..LimitItem::default()
    })
}

fn policy_item(scanner: &mut Scanner<'_>) -> Result<PolicyItem, FieldSyntaxError> {
    let at = scanner.at();
    let first = scanner.item_or_inner_list()?;
    let [mut q, mut qu, mut w, mut pk, mut named] = [None; 5];
    scanner.parameters(|key, value| match key {
        "q" => q = Some(value),
        "qu" => qu = Some(value),
        "w" => w = Some(value),
        "pk" => pk = Some(value),
        "name" => named = Some(value),
        _ => {}
    })?;
    let unit = optional(qu, "qu", at, text)?;
    let (name, quota) = match first {
        // Before names, the item was the quota itself. Envoy puts the name into a parameter.
        BareItem::Integer(_) => {
            (optional(named, "name", at, text)?, required(Some(first), "q", at, uint)?)
        }
        _ => match text(first) {
            Some(name) => (Some(name), required(q, "q", at, uint)?),
            None => {
                return Err(FieldSyntaxError {
                    kind: FieldErrorKind::Expected("a name or a quota"),
                    at,
                });
            }
        },
    };
    Ok(PolicyItem {
        name,
        quota,
        unit: unit.map_or(Some(Unit::Requests), |unit| Unit::parse(&unit)),
        window_s: optional(w, "w", at, |value| uint(value).filter(|&window_s| window_s > 0))?,
        partition: optional(pk, "pk", at, bytes)?,
    })
}

/// The entries of draft -07. Of equal keys the last counts, as in every dictionary.
#[derive(Default)]
struct Dictionary<'a> {
    limit: Option<BareItem<'a>>,
    remaining: Option<BareItem<'a>>,
    reset: Option<BareItem<'a>>,
}

impl<'a> Dictionary<'a> {
    fn set(&mut self, key: &str, value: BareItem<'a>) {
        match key {
            "limit" => self.limit = Some(value),
            "remaining" => self.remaining = Some(value),
            "reset" => self.reset = Some(value),
            _ => {}
        }
    }

    fn item(&self) -> Result<LimitItem, FieldSyntaxError> {
        let reset_s = optional(self.reset, "reset", 0, uint)?;
        Ok(LimitItem {
            limit: optional(self.limit, "limit", 0, uint)?,
            remaining: required(self.remaining, "remaining", 0, uint)?,
            reset: reset_s.map(|s| FieldInstant::AfterUs(s.saturating_mul(US_PER_S))),
            ..LimitItem::default()
        })
    }
}

fn optional<T>(
    value: Option<BareItem<'_>>,
    key: &'static str,
    at: usize,
    read: impl Fn(BareItem<'_>) -> Option<T>,
) -> Result<Option<T>, FieldSyntaxError> {
    let wrong = FieldSyntaxError { kind: FieldErrorKind::WrongValue(key), at };
    value.map(|value| read(value).ok_or(wrong)).transpose()
}

fn required<T>(
    value: Option<BareItem<'_>>,
    key: &'static str,
    at: usize,
    read: impl Fn(BareItem<'_>) -> Option<T>,
) -> Result<T, FieldSyntaxError> {
    optional(value, key, at, read)?
        .ok_or(FieldSyntaxError { kind: FieldErrorKind::Missing(key), at })
}
