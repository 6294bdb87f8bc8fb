//! `TG.CHECK` and similar commands: limits of the policy, by name.

use crate::front::resp::encode::decision;
use std::ops::Range;
use tollgate::engine::{Rules, SingleVerdict, Source};
use tollgate_core::Outcome;
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::Limit;

/// Limit of a value, in bytes; equal to the check API's.
const VALUE_BYTES_MAX: usize = 4096;

/// A limit, the values of its key, and the remaining arguments.
#[derive(Debug)]
pub(crate) struct LimitCall<'a> {
    /// The index of the limit in the file.
    pub(crate) limit: usize,
    pub(crate) values: &'a [Range<usize>],
    pub(crate) rest: &'a [Range<usize>],
}

/// A call without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LimitCallError {
    #[error("ERR no limit is called '{0}'")]
    Unknown(Box<str>),
    #[error("ERR limit '{limit}' has {}, not {count}{COUNT_HINT}", wanted_values(.key))]
    Count { limit: Box<str>, key: Box<[Box<str>]>, count: usize },
    #[error("ERR after the limit comes how many values follow, such as TG.CHECK per-user 1 42")]
    NotACount,
    #[error("ERR fewer values than announced")]
    TooFew,
    #[error("ERR value {0}: {1}")]
    Value(usize, Box<str>),
    #[error("ERR a cost is a whole number from 0")]
    Cost,
    #[error("ERR a ttl is in milliseconds, from 1 to 3600000")]
    Ttl,
    #[error(
        "ERR usage: TG.SETTLE id cost [ok|overloaded [latency_ms]], with a latency of at most 3600000"
    )]
    Report,
    #[error(
        "ERR usage: TG.CHECK|TG.PEEK limit n v1..vn [cost], TG.RESERVE limit n v1..vn [cost [ttl_ms]]"
    )]
    Arguments,
}

impl<'a> LimitCall<'a> {
    /// Parses `name n v1 .. vn`, and keeps the rest. `named` is the limit that was named last,
    /// which is often named again.
    pub(crate) fn parse(
        bytes: &[u8],
        arguments: &'a [Range<usize>],
        rules: &Rules,
        named: &mut usize,
    ) -> Result<Self, LimitCallError> {
        let [_, name, count, rest @ ..] = arguments else { return Err(LimitCallError::Arguments) };
        let (name, policy) = (&bytes[name.clone()], rules.policy());
        let is_named = |limit: &&Limit| limit.name.as_bytes() == name;
        let limit = match policy.nameable_limit(*named).filter(is_named) {
            Some(limit) => limit,
            None => {
                let found = policy.nameable_limits().find(|(_, limit)| is_named(limit));
                let (place, limit) = found.ok_or_else(|| LimitCallError::Unknown(quoted(name)))?;
                *named = place;
                limit
            }
        };
        let count =
            parse_unsigned(&bytes[count.clone()]).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or(LimitCallError::NotACount)?;
        if limit.fallback_keys.is_empty() && count != limit.key.len() {
            let (limit, key) = (limit.name.clone(), limit.key.clone());
            return Err(LimitCallError::Count { limit, key, count });
        }
        let (values, rest) = rest.split_at_checked(count).ok_or(LimitCallError::TooFew)?;
        Ok(Self { limit: *named, values, rest })
    }

    /// Sets the attributes of the limit's key.
    pub(crate) fn set_key<'b>(
        &self,
        bytes: &'b [u8],
        rules: &'b Rules,
        facts: &mut Facts<'b>,
    ) -> Result<(), LimitCallError> {
        let limit = &rules.policy().limits()[self.limit];
        let mut names = limit.key.iter();
        let mut given: Vec<&str> = Vec::new();
        for (place, value) in self.values.iter().enumerate() {
            let bad = |why: &str| LimitCallError::Value(place + 1, why.into());
            let value =
                str::from_utf8(&bytes[value.clone()]).map_err(|_| bad("it is not UTF-8"))?;
            let (name, value) = if limit.fallback_keys.is_empty() {
                (names.next().map_or("", |name| name), value)
            } else {
                let (name, value) = split_named_value(limit, value).ok_or_else(|| {
                    let names = limit.keys().map(|key| key.join(", ")).collect::<Vec<_>>();
                    bad(&format!("write name=value, with a name of: {}", names.join(" | ")))
                })?;
                if given.contains(&name) {
                    return Err(bad(&format!("`{name}` has a value already")));
                }
                given.push(name);
                (name, value)
            };
            if value.len() > VALUE_BYTES_MAX {
                return Err(bad("it has more than 4096 bytes"));
            }
            facts.set(name, value).map_err(|why| bad(&why.to_string()))?;
        }
        Ok(())
    }

    /// The cost argument, if the call may have one; 1 if it is absent.
    pub(crate) fn cost(&self, bytes: &[u8]) -> Result<u64, LimitCallError> {
        match self.rest {
            [] => Ok(1),
            [cost] => parse_unsigned(&bytes[cost.clone()]).ok_or(LimitCallError::Cost),
            _ => Err(LimitCallError::Arguments),
        }
    }
}

/// Splits `name=value` into an attribute and its value. A limit with several keys needs the names:
/// `[user]` and `[ip]` have one value each. An attribute's name may contain `=`, so the longest
/// match counts.
fn split_named_value<'l, 'v>(limit: &'l Limit, text: &'v str) -> Option<(&'l str, &'v str)> {
    let value = |name: &str| text.strip_prefix(name)?.strip_prefix('=');
    let names = limit.keys().flatten().map(|name| &**name);
    let fits = names.filter_map(|name| Some((name, value(name)?)));
    fits.max_by_key(|(name, _)| name.len())
}

/// A hint for callers that left out the count, so that the first value is read as the count.
const COUNT_HINT: &str = "; the second argument is how many values follow";

/// The values that a limit with this key takes.
fn wanted_values(key: &[Box<str>]) -> String {
    match key.len() {
        0 => "no key: 0 values".to_owned(),
        count => format!("the key {}: {count} values", key.join(", ")),
    }
}

/// Parses decimal digits only.
pub(crate) fn parse_unsigned(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

/// The part of the input that an error quotes.
fn quoted(text: &[u8]) -> Box<str> {
    String::from_utf8_lossy(&text[..text.len().min(64)]).into()
}

/// Writes a decision, in milliseconds; -1 stands for undisclosed numbers.
pub(crate) fn write_decision(out: &mut Vec<u8>, decided: &SingleVerdict, disclose: bool) {
    match decided.source {
        Source::None => decision(out, NO_LIMIT),
        _ => decision(out, decision_integers(decided.allowed, &decided.outcome, disclose)),
    }
}

/// The reply if no limit applies.
pub(crate) const NO_LIMIT: [i64; 5] = [0, -1, -1, -1, 0];

pub(crate) fn decision_integers(allowed: bool, outcome: &Outcome, disclose: bool) -> [i64; 5] {
    let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let shown = |value: u64| if disclose { integer(value) } else { -1 };
    let retry_ms = match (allowed, outcome.retry_after_us) {
        (false, Some(wait_us)) => integer(wait_us.div_ceil(1_000).max(1)),
        (false, None) | (true, _) => -1,
    };
    let reset_ms = outcome.reset_after_us.div_ceil(1_000);
    let [limit, remaining, reset_ms] = [outcome.limit, outcome.remaining, reset_ms].map(shown);
    [i64::from(!allowed), limit, remaining, retry_ms, reset_ms]
}
