//! What a limiter answers.

use smallvec::SmallVec;
use std::fmt;
use std::time::Duration;
use tollgate_core::Receipt;

/// Admitted or refused. Both are answers; a store that could answer neither is an error, which a
/// limiter in memory never has.
///
/// ```
/// use tollgate::{Decision, Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(1)?);
/// let answer = |decision: Decision| match decision {
///     Decision::Admitted(permit) => format!("200, {} left", permit.remaining),
///     Decision::Refused(refusal) => format!("429, {refusal}"),
/// };
/// assert_eq!(answer(limiter.check("alice")), "200, 0 left");
/// assert!(answer(limiter.check("alice")).starts_with("429, 0 of 1 left; retry after "));
/// # Ok::<(), tollgate::quota::InvalidQuota>(())
/// ```
#[derive(Debug)]
#[must_use = "a decision that nobody heeds limits nothing"]
pub enum Decision<T = Permit> {
    /// Go ahead. What was taken stays taken when this is dropped.
    Admitted(T),
    /// Not now. Nothing was taken.
    Refused(Refusal),
}

impl<T> Decision<T> {
    /// Whether to go ahead.
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }

    /// What was admitted, for whoever needs no reason for a refusal.
    pub fn admitted(self) -> Option<T> {
        match self {
            Self::Admitted(admitted) => Some(admitted),
            Self::Refused(_) => None,
        }
    }

    /// Why not, if it was refused.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Admitted(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }

    /// The same decision about something made of what was admitted.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Decision<U> {
        match self {
            Self::Admitted(admitted) => Decision::Admitted(make(admitted)),
            Self::Refused(refusal) => Decision::Refused(refusal),
        }
    }
}

/// What was admitted. The numbers are those after it, of the quota with the least left.
///
/// Dropping a permit keeps the charge; [`Limiter::refund`](crate::Limiter::refund) returns it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Permit {
    /// How many units the quota admits at once.
    pub limit: u64,
    /// How many more units would pass at this instant.
    pub remaining: u64,
    /// Until the quota is as if never used.
    pub reset_after: Duration,
    /// How long to hold back before going ahead; zero unless the quota has a
    /// [queue](crate::Quota::with_queue).
    pub delay: Duration,
    pub(super) record: PermitRecord,
}

/// Why not, and for how long. With several quotas the numbers are those of the refusing one that
/// takes longest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// How many units the quota admits at once.
    pub limit: u64,
    /// How many units would pass at this instant: fewer than were asked for.
    pub remaining: u64,
    /// With time alone the same is refused until then, and admitted then. `None`: it asks for more
    /// than the quota ever admits at once, and no wait can help.
    pub retry_after: Option<Duration>,
    /// Until the quota is as if never used.
    pub reset_after: Duration,
    /// Whether the key is [blocked](crate::Limiter::block).
    pub blocked: bool,
    /// No sooner than this, whoever gives up a slot; `None` as above.
    pub(crate) earliest: Option<Duration>,
}

/// Where a key stands: what a check would be told, with nothing taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// Whether the cost asked about would be admitted.
    pub admits: bool,
    /// How many units the quota admits at once.
    pub limit: u64,
    /// How many units would pass at this instant.
    pub remaining: u64,
    /// Zero when admitted; otherwise as [`Refusal::retry_after`].
    pub retry_after: Option<Duration>,
    /// Until the quota is as if never used.
    pub reset_after: Duration,
    /// Whether the key is [blocked](crate::Limiter::block).
    pub blocked: bool,
    pub(crate) earliest: Option<Duration>,
    pub(super) delay: Duration,
}

/// What a permit took, and from whom: enough to give it back, and nowhere else.
#[derive(Debug)]
pub(super) struct PermitRecord {
    pub(super) limiter: u64,
    /// How often the limiter had been reset.
    pub(super) resets: u64,
    /// Short keys are kept in place, so that a check allocates nothing for them.
    pub(super) key: SmallVec<[u8; 32]>,
    pub(super) receipts: Receipts,
}

/// One for each quota; `None` where nothing was taken.
pub(super) type Receipts = SmallVec<[Option<Receipt>; 1]>;

impl Permit {
    pub(super) fn new(standing: &Standing, taken: PermitRecord) -> Self {
        Self {
            limit: standing.limit,
            remaining: standing.remaining,
            reset_after: standing.reset_after,
            delay: standing.delay,
            record: taken,
        }
    }
}

impl Standing {
    /// Of somebody whom no quota concerns.
    pub(super) const fn open() -> Self {
        Self {
            admits: true,
            limit: 0,
            remaining: 0,
            retry_after: Some(Duration::ZERO),
            reset_after: Duration::ZERO,
            blocked: false,
            earliest: Some(Duration::ZERO),
            delay: Duration::ZERO,
        }
    }
}

impl From<Standing> for Refusal {
    fn from(standing: Standing) -> Self {
        Self {
            limit: standing.limit,
            remaining: standing.remaining,
            retry_after: standing.retry_after,
            reset_after: standing.reset_after,
            blocked: standing.blocked,
            earliest: standing.earliest,
        }
    }
}

/// As one would put it in a log or an answer.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} left; ", self.remaining, self.limit)?;
        match self.retry_after {
            _ if self.blocked => f.write_str("blocked")?,
            None => return f.write_str("no wait can help"),
            Some(_) => {}
        }
        match self.retry_after {
            Some(wait) if self.blocked => write!(f, " for {wait:?}"),
            Some(wait) => write!(f, "retry after {wait:?}"),
            None => Ok(()),
        }
    }
}
