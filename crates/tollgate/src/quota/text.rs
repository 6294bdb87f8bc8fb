//! Formats and parses quotas.

use super::{Algorithm, Amount, InvalidQuota, Quota};
use std::fmt;
use std::str::FromStr;
use tollgate_core::written_rate::{InvalidWrittenRate, WrittenRate};
use tollgate_core::{CalendarUnit, InvalidParams, Rate};

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            Amount::Rate(rate) => write!(f, "{} per {}", rate.count(), Period(rate.period_us()))?,
            Amount::Slots { count, ttl_us } => {
                return write!(f, "{count} at once, each for at most {}", Span(ttl_us));
            }
        }
        match self.algorithm() {
            Algorithm::LeakyBucket => {
                write!(f, ", {} at once", self.burst.unwrap_or(1))?;
                if let Some(queue @ 1..) = self.queue {
                    write!(f, " and {queue} in a queue")?;
                }
            }
            algorithm if algorithm.has_burst() => write!(f, ", up to {} at once", self.capacity())?,
            _ => {}
        }
        write!(f, " ({})", self.algorithm())
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quota({self})")
    }
}

/// Parses the `rate` of a policy file: `100/min`, `5/250ms`, or a bare number of slots. There is no
/// quota for `unlimited`: leave the limiter out.
///
/// ```
/// use tollgate::Quota;
///
/// assert_eq!("100/min".parse(), Ok(Quota::per_minute(100)));
/// assert_eq!("20".parse(), Ok(Quota::concurrency(20)));
/// let error = "100/minute".parse::<Quota>().unwrap_err();
/// assert_eq!(error.to_string(), "`100/minute` is not a rate; write `min` for the unit");
/// ```
impl FromStr for Quota {
    type Err = InvalidQuota;

    fn from_str(text: &str) -> Result<Self, InvalidQuota> {
        match WrittenRate::parse(text).map_err(|invalid| unreadable(text, &invalid))? {
            WrittenRate::Per { unit: Some(CalendarUnit::Month), .. } => {
                Err(InvalidQuota::Unreadable(
                    "months differ in length; write a number of days, such as `30d`".into(),
                ))
            }
            WrittenRate::Per { count, period_us, .. } => {
                Self::try_new(Amount::Rate(Rate::try_new(count, period_us)?), None, None, None)
            }
            WrittenRate::Slots(count) => match count.try_into() {
                Ok(count) => Ok(Self::concurrency(count)),
                Err(_) => Err(InvalidParams::CountTooLarge.into()),
            },
            WrittenRate::Unlimited => Err(InvalidQuota::Unreadable(
                "`unlimited` is no quota; leave the limiter out instead".into(),
            )),
        }
    }
}

fn unreadable(text: &str, invalid: &InvalidWrittenRate) -> InvalidQuota {
    match invalid {
        InvalidWrittenRate::NotARate(help) => {
            let shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
            InvalidQuota::Unreadable(format!("`{shown}` is not a rate; {help}").into())
        }
        InvalidWrittenRate::CountTooLarge => InvalidParams::CountTooLarge.into(),
        _ => InvalidParams::PeriodOutOfRange.into(),
    }
}

const UNITS: &[(u64, &str, &str)] = &[
    (86_400_000_000, "day", "d"),
    (3_600_000_000, "hour", "h"),
    (60_000_000, "minute", "m"),
    (1_000_000, "second", "s"),
    (1_000, "millisecond", "ms"),
    (1, "microsecond", "µs"),
];

/// A period after "per": a single unit is named, several are counted.
struct Period(u64);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|unit| unit.0 == self.0) {
            Some((_, name, _)) => f.write_str(name),
            None => Span(self.0).fmt(f),
        }
    }
}

/// A duration in the largest unit that expresses it exactly.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: &&(u64, &str, &str)| self.0.is_multiple_of(unit.0);
        match UNITS.iter().find(fits) {
            Some((unit_us, _, short)) => write!(f, "{}{short}", self.0 / unit_us),
            None => write!(f, "{}µs", self.0),
        }
    }
}
