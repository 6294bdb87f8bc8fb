//! Answers of a limiter.

use smallvec::SmallVec;
use std::fmt;
use std::time::Duration;
use tollgate_core::Receipt;
use tollgate_store::Answer;

/// Admitted or refused. A failure of the store is neither: it is an error, which a limiter in
/// memory never returns.
///
/// ```
/// use tollgate::{Decision, Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(1));
/// let answer = |decision: Decision| match decision {
///     Decision::Admitted(permit) => format!("200, {} left", permit.remaining),
///     Decision::Refused(refusal) => format!("429, {refusal}"),
/// };
/// assert_eq!(answer(limiter.check("alice")), "200, 0 left");
/// assert!(answer(limiter.check("alice")).starts_with("429, 0 of 1 left; retry after "));
/// ```
#[derive(Debug)]
#[must_use = "an ignored decision limits nothing"]
pub enum Decision<T = Permit> {
    /// Go ahead. Dropping this keeps the charge.
    Admitted(T),
    /// Not now. Nothing was charged.
    Refused(Refusal),
}

impl<T> Decision<T> {
    /// Whether to go ahead ([example](crate::Limiter)).
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }

    /// The permit; `None` if refused ([example](crate::Limiter)).
    pub fn admitted(self) -> Option<T> {
        match self {
            Self::Admitted(admitted) => Some(admitted),
            Self::Refused(_) => None,
        }
    }

    /// The refusal; `None` if admitted ([example](crate::Limiter)).
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Admitted(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }

    /// Maps the permit ([example](crate::Limiter)).
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Decision<U> {
        match self {
            Self::Admitted(admitted) => Decision::Admitted(make(admitted)),
            Self::Refused(refusal) => Decision::Refused(refusal),
        }
    }
}

/// An admission, in a [`Decision`]. Its figures are those of the tightest quota, after the charge.
///
/// Times are methods, since most callers never need the division that makes a [`Duration`].
///
/// The charge stays. To be able to give it back, [reserve](crate::Limiter::reserve) instead of
/// checking.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permit {
    /// The units that the quota admits at once.
    pub limit: u64,
    /// The units that would pass now.
    pub remaining: u64,
    pub(super) reset_after_us: u64,
    pub(super) delay_us: u64,
}

impl Permit {
    /// The time until the quota is full again ([example](crate::Limiter)).
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after_us)
    }

    /// How long to wait before going ahead; zero unless the quota has a
    /// [queue](crate::Quota::with_queue).
    pub const fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us)
    }
}

/// A refusal, in a [`Decision`]. Its figures are those of the quota that refuses for the longest
/// time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The units that the quota admits at once.
    pub limit: u64,
    /// The units that would pass now: fewer than requested.
    pub remaining: u64,
    /// Whether the key is [blocked](crate::Limiter::block).
    pub blocked: bool,
    pub(super) retry_after_us: Option<u64>,
    pub(super) reset_after_us: u64,
    /// The earliest time, even if slots are freed; `None` as for the wait.
    pub(super) earliest_us: Option<u64>,
}

impl Refusal {
    /// The time after which the same cost is admitted. `None`: the cost exceeds what the quota ever
    /// admits at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_minute(1));
    /// assert!(limiter.check("alice").is_admitted());
    /// let decision = limiter.check("alice");
    /// let refusal = decision.refusal().ok_or("admitted")?;
    /// assert!(refusal.retry_after() <= Some(Duration::from_secs(120)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_us.map(Duration::from_micros)
    }

    /// The time until the quota is full again ([example](crate::Limiter)).
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after_us)
    }
}

/// The state of a key, from [`peek`](crate::Limiter::peek): the answer that a check would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// Whether the cost would be admitted.
    pub admits: bool,
    /// The units that the quota admits at once.
    pub limit: u64,
    /// The units that would pass now.
    pub remaining: u64,
    /// Whether the key is [blocked](crate::Limiter::block).
    pub blocked: bool,
    pub(super) retry_after_us: Option<u64>,
    pub(super) reset_after_us: u64,
    pub(super) earliest_us: Option<u64>,
    pub(super) delay_us: u64,
}

/// A permit with what it takes to give its charge back.
#[derive(Debug)]
pub(super) struct PermitRecord {
    pub(super) permit: Permit,
    /// The number of resets before the charge.
    pub(super) resets: u64,
    /// Short keys are stored inline, so that a check does not allocate.
    pub(super) key: SmallVec<[u8; 32]>,
    pub(super) receipts: Receipts,
}

/// One for each quota; `None` where nothing was taken.
pub(super) type Receipts = SmallVec<[Option<Receipt>; 1]>;

impl From<Standing> for Permit {
    #[inline(always)]
    fn from(standing: Standing) -> Self {
        let Standing { limit, remaining, reset_after_us, delay_us, .. } = standing;
        Self { limit, remaining, reset_after_us, delay_us }
    }
}

impl From<Standing> for Decision {
    #[inline(always)]
    fn from(standing: Standing) -> Self {
        if standing.admits {
            Self::Admitted(standing.into())
        } else {
            Self::Refused(standing.into())
        }
    }
}

impl Standing {
    /// Zero when admitted; otherwise as [`Refusal::retry_after`].
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_us.map(Duration::from_micros)
    }

    /// The time until the quota is full again ([example](crate::Limiter)).
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after_us)
    }

    /// The state of a key whose tightest row is this one.
    #[inline(always)]
    pub(super) fn of_row(admits: bool, row: &Answer, earliest_us: Option<u64>) -> Self {
        let Answer { outcome, blocked, .. } = *row;
        Self {
            admits,
            limit: outcome.limit,
            remaining: outcome.remaining,
            blocked,
            retry_after_us: outcome.retry_after_us,
            reset_after_us: outcome.reset_after_us,
            earliest_us,
            delay_us: outcome.delay_us,
        }
    }
}

impl From<Standing> for Refusal {
    #[inline(always)]
    fn from(standing: Standing) -> Self {
        Self {
            limit: standing.limit,
            remaining: standing.remaining,
            blocked: standing.blocked,
            retry_after_us: standing.retry_after_us,
            reset_after_us: standing.reset_after_us,
            earliest_us: standing.earliest_us,
        }
    }
}

/// For a log or a response.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} left; ", self.remaining, self.limit)?;
        match self.retry_after() {
            _ if self.blocked => f.write_str("blocked")?,
            None => return f.write_str("no wait can help"),
            Some(_) => {}
        }
        match self.retry_after() {
            Some(wait) if self.blocked => write!(f, " for {wait:?}"),
            Some(wait) => write!(f, "retry after {wait:?}"),
            None => Ok(()),
        }
    }
}
