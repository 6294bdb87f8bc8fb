//! `CL.THROTTLE` of redis-cell, and `GCRA`, a similar command proposed for Redis itself.
//!
//! The parameters come with every call, and the state belongs to the key alone. So a caller that
//! changes its parameters keeps the key's usage.

use crate::front::resp::decode::integer;
use crate::front::resp::encode::decision;
use std::fmt;
use std::ops::Range;
use tollgate::engine::SingleVerdict;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Algorithm, InvalidParams, LimitParams, Rate};

/// The parameters of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThrottleSpec {
    /// Units admitted at once beyond the first.
    pub(crate) max_burst: i64,
    /// Units per period.
    pub(crate) count: i64,
    pub(crate) period_us: i64,
}

/// The command that was called. The two differ in arguments, error texts and rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Cell,
    Gcra,
}

/// A call without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThrottleError<'a> {
    Usage,
    NotAnInteger(&'a [u8]),
    ZeroRate,
    Negative(&'static str),
    TooLarge(&'static str),
    Numbers(InvalidParams),
    /// An invalid period; `GCRA` only.
    Period(&'a [u8]),
    Tokens,
}

const SECOND_US: i64 = 1_000_000;
/// Limit of quoted input in errors that redis-cell does not have.
const QUOTED_BYTES_MAX: usize = 64;

impl ThrottleSpec {
    /// The parameters in lowest terms, so that specifications with different periods use the same
    /// fraction of a microsecond.
    ///
    /// A period has at least a millisecond. A shorter one is written as several periods.
    pub(crate) fn limit_params(self) -> Result<LimitParams, ThrottleError<'static>> {
        let positive = |value: i64| u64::try_from(value).unwrap_or(0);
        let (count, period_us) = (positive(self.count), positive(self.period_us));
        // Checked in the caller's own numbers, before reduction.
        Rate::try_new(count, period_us).map_err(ThrottleError::Numbers)?;
        let burst = positive(self.max_burst).saturating_add(1);
        if burst > u64::from(u32::MAX) {
            return Err(ThrottleError::TooLarge("max_burst"));
        }
        let common = gcd(count, period_us);
        let (count, period_us) = (count / common, period_us / common);
        let times = 1_000_u64.div_ceil(period_us);
        let gcra = |times: u64| {
            let rate = Rate::try_new(count * times, period_us * times)?;
            Gcra::try_new(rate, Some(burst))
        };
        // A TAT with a bound of exactly one period does not record it, and the next call on the key
        // may have another period. So the bound is made different from a period, unless that leaves
        // the range of numbers.
        let gcra = if burst == count * times {
            gcra(times + 1).or_else(|_| gcra(times))
        } else {
            gcra(times)
        };
        gcra.map(LimitParams::Gcra).map_err(ThrottleError::Numbers)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl Dialect {
    /// Parses the key, the parameters and the cost.
    #[inline]
    pub(crate) fn parse<'a>(
        self,
        bytes: &'a [u8],
        arguments: &[Range<usize>],
    ) -> Result<(Range<usize>, ThrottleSpec, u64), ThrottleError<'a>> {
        match self {
            Self::Cell => parse_cell(bytes, arguments),
            Self::Gcra => parse_gcra(bytes, arguments),
        }
    }

    /// Writes a decision.
    #[inline]
    pub(crate) fn write_decision(
        self,
        out: &mut Vec<u8>,
        decided: &SingleVerdict,
        params: &LimitParams,
        cost: u64,
    ) {
        let mut outcome = decided.outcome;
        // A peek (cost 0) is limited while the key owes more than a full bucket of its parameters.
        let full_us = || params.window_us().unwrap_or(u64::MAX);
        if cost == 0 && outcome.admitted && outcome.reset_after_us > full_us() {
            outcome.admitted = false;
            outcome.retry_after_us = Some(outcome.reset_after_us - full_us());
        }
        let reset_s = match self {
            Self::Cell => cell_seconds(outcome.reset_after_us),
            Self::Gcra => outcome.reset_after_us.div_ceil(1_000_000),
        };
        let retry_s = match (outcome.admitted, outcome.retry_after_us) {
            // Rounded up: a client that returns then is admitted, which redis-cell does not
            // guarantee.
            (false, Some(wait_us)) => as_integer(wait_us.div_ceil(1_000_000).max(1)),
            (false, None) | (true, _) => -1,
        };
        let limited = i64::from(!outcome.admitted);
        let [limit, remaining, reset_s] =
            [params.capacity(), outcome.remaining, reset_s].map(as_integer);
        decision(out, [limited, limit, remaining, retry_s, reset_s]);
    }
}

#[inline]
fn as_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Whole seconds as in redis-cell: one more if a millisecond is left.
#[inline]
fn cell_seconds(us: u64) -> u64 {
    us / 1_000_000 + u64::from(us % 1_000_000 >= 1_000)
}

#[inline]
fn parse_cell<'a>(
    bytes: &'a [u8],
    arguments: &[Range<usize>],
) -> Result<(Range<usize>, ThrottleSpec, u64), ThrottleError<'a>> {
    let [_, key, params @ ..] = arguments else { return Err(ThrottleError::Usage) };
    let (3 | 4, [burst, count, period, cost @ ..]) = (params.len(), params) else {
        return Err(ThrottleError::Usage);
    };
    let read = |at: &Range<usize>| {
        let text = &bytes[at.clone()];
        integer(text).ok_or(ThrottleError::NotAnInteger(text))
    };
    let (max_burst, count, period_s) = (read(burst)?, read(count)?, read(period)?);
    let cost = match cost {
        [cost] => read(cost)?,
        _ => 1,
    };
    if count == 0 || period_s == 0 {
        return Err(ThrottleError::ZeroRate);
    }
    for (value, name) in
        [(max_burst, "max_burst"), (count, "count"), (period_s, "period"), (cost, "quantity")]
    {
        if value < 0 {
            return Err(ThrottleError::Negative(name));
        }
    }
    let period_us = period_s.checked_mul(SECOND_US).ok_or(ThrottleError::TooLarge("period"))?;
    Ok((key.clone(), ThrottleSpec { max_burst, count, period_us }, cost.unsigned_abs()))
}

/// Parses `GCRA key max_burst tokens_per_period period [TOKENS n]`. A period may have decimals; the
/// least cost is one token.
fn parse_gcra<'a>(
    bytes: &'a [u8],
    arguments: &[Range<usize>],
) -> Result<(Range<usize>, ThrottleSpec, u64), ThrottleError<'a>> {
    let text = |at: &Range<usize>| &bytes[at.clone()];
    let read = |at: &Range<usize>| integer(text(at)).ok_or(ThrottleError::NotAnInteger(text(at)));
    let (head, cost) = match arguments {
        [head @ .., word, cost] if head.len() == 5 => {
            if !text(word).eq_ignore_ascii_case(b"TOKENS") {
                return Err(ThrottleError::Usage);
            }
            (head, read(cost)?)
        }
        head => (head, 1),
    };
    let [_, key, burst, count, period] = head else { return Err(ThrottleError::Usage) };
    let (max_burst, count) = (read(burst)?, read(count)?);
    let period_us = decimal_us(text(period)).ok_or(ThrottleError::Period(text(period)))?;
    if cost < 1 {
        return Err(ThrottleError::Tokens);
    }
    if count == 0 || period_us == 0 {
        return Err(ThrottleError::ZeroRate);
    }
    for (value, name) in [(max_burst, "max_burst"), (count, "tokens_per_period")] {
        if value < 0 {
            return Err(ThrottleError::Negative(name));
        }
    }
    Ok((key.clone(), ThrottleSpec { max_burst, count, period_us }, cost.unsigned_abs()))
}

/// Parses seconds with at most six decimals from their digits.
fn decimal_us(text: &[u8]) -> Option<i64> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, decimals) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !is_digits(whole) || (point < text.len() && !is_digits(decimals)) || decimals.len() > 6 {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', 6 - decimals.len());
    let digits = whole.iter().chain(decimals).chain(zeros);
    digits
        .into_iter()
        .try_fold(0_i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
}

/// The texts of redis-cell, where it has one; `error_message` adds the prefix.
impl fmt::Display for ThrottleError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &[u8]| {
            let short = &text[..text.len().min(QUOTED_BYTES_MAX)];
            String::from_utf8_lossy(short).into_owned()
        };
        match self {
            Self::Usage => f.write_str(
                "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]",
            ),
            Self::NotAnInteger(text) => {
                write!(f, "Couldn't parse as integer: {}", String::from_utf8_lossy(text))
            }
            Self::ZeroRate => f.write_str("Zero rates are not supported"),
            Self::Negative(name) => write!(f, "{name} must not be negative"),
            Self::TooLarge("max_burst") => f.write_str("max_burst is at most 4294967294"),
            Self::TooLarge(name) => write!(f, "{name} is too large"),
            Self::Numbers(invalid) => invalid.fmt(f),
            Self::Period(text) => write!(
                f,
                "the period is in seconds with at most six decimals, not '{}'",
                quoted(text)
            ),
            Self::Tokens => f.write_str("TOKENS must be at least 1"),
        }
    }
}

impl Dialect {
    /// The prefix of a [`ThrottleError`]'s text, and the replacement for redis-cell's usage text.
    pub(crate) fn error_message(self, bad: ThrottleError<'_>) -> String {
        match (self, bad) {
            (Self::Cell, bad) => format!("Cell error: Store error: {bad}"),
            (Self::Gcra, ThrottleError::Usage) => {
                "ERR usage: GCRA key max_burst tokens_per_period period [TOKENS n]".into()
            }
            (Self::Gcra, bad) => format!("ERR {bad}"),
        }
    }
}

#[cfg(test)]
mod tests;
