//! Rows: one limit's values in the headers of one answer.

use crate::Outcome;
use core::cmp::Reverse;

/// One limit's values for one answer. Limits that are not disclosed, or only shadow, get no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The limit's name: a [`valid_name`], checked when the policy is loaded.
    pub name: &'a str,
    /// The capacity shown, draft-11 `q`.
    pub limit: u64,
    /// What the capacity counts.
    pub unit: Unit,
    /// The window shown beside the capacity; `None` where capacity does not come back by itself.
    pub window_us: Option<u64>,
    /// Units available now, draft-11 `r`.
    pub remaining: u64,
    /// Until more than `remaining` is available, draft-11 `t`; `None` leaves it out.
    pub more_after_us: Option<u64>,
    /// Until the limit is as good as unused: the reset of the older header sets.
    pub reset_after_us: u64,
    /// Whether this limit alone refuses.
    pub refused: bool,
    /// When a refused request would pass; `None` when no wait can help.
    pub retry_after_us: Option<u64>,
    /// Draft-11 `pk`: which of the limit's keys this is, without anything secret in it.
    pub partition: Option<&'a [u8]>,
    /// A stable hash of limit and key, Discord's bucket.
    pub bucket: u64,
    /// Which requests share the capacity.
    pub scope: Scope,
}

/// What a quota counts, draft-11 `qu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, which is also what a policy without a unit counts.
    #[default]
    Requests,
    /// Bytes of content.
    ContentBytes,
    /// Requests in flight at one time.
    ConcurrentRequests,
}

/// Which requests share a limit's capacity, in Discord's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// The limit has a key, so each client has its own capacity.
    #[default]
    User,
    /// The limit has no key, so all clients share one capacity.
    Shared,
    /// Across every route. Only read from others, never written.
    Global,
}

impl<'a> Row<'a> {
    /// The row of an outcome: counting requests, without a partition, of a limit with a key.
    pub const fn new(name: &'a str, window_us: Option<u64>, outcome: &Outcome) -> Self {
        Self {
            name,
            limit: outcome.limit,
            unit: Unit::Requests,
            window_us,
            remaining: outcome.remaining,
            more_after_us: outcome.more_after_us,
            reset_after_us: outcome.reset_after_us,
            refused: !outcome.admitted,
            retry_after_us: outcome.retry_after_us,
            partition: None,
            bucket: 0,
            scope: Scope::User,
        }
    }

    /// With another unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// With the partition: which of the limit's keys the row is about.
    pub const fn partition(mut self, partition: &'a [u8]) -> Self {
        self.partition = Some(partition);
        self
    }

    /// With the stable hash of its limit and key.
    pub const fn bucket(mut self, bucket: u64) -> Self {
        self.bucket = bucket;
        self
    }

    /// With another scope.
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// The row that fields with room for only one limit show: of those that refuse the one with the
/// longest wait, no wait being the longest; else the one with the least remaining. The first of
/// equals.
pub fn tightest<'r, 'a>(rows: &'r [Row<'a>]) -> Option<&'r Row<'a>> {
    rows.get(tightest_at(rows)?)
}

/// Where the [`tightest`] is.
pub(super) fn tightest_at(rows: &[Row<'_>]) -> Option<usize> {
    let places = rows.iter().enumerate();
    if rows.iter().all(|row| !row.refused) {
        return Some(places.min_by_key(|(_, row)| row.remaining)?.0);
    }
    let key = |row: &Row<'_>| tightness(row.refused, row.retry_after_us, row.remaining);
    Some(places.min_by_key(|(_, row)| key(row))?.0)
}

/// Orders limits by tightness, the tightest first. Limits that refuse come first, by the longest
/// wait; a wait that never ends is the longest. The others follow by what remains. An answer that
/// names one limit names the first of the tightest.
#[inline]
pub fn tightness(refused: bool, retry_after_us: Option<u64>, remaining: u64) -> impl Ord {
    if refused {
        (false, Reverse((retry_after_us.is_none(), retry_after_us)), 0)
    } else {
        (true, Reverse((false, None)), remaining)
    }
}

/// Whether a limit's name can stand in a field: not empty, and printable ASCII throughout.
pub fn valid_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

impl Unit {
    /// The unit's registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::ContentBytes => "content-bytes",
            Self::ConcurrentRequests => "concurrent-requests",
        }
    }

    /// The unit of that name. The draft's registry table says `request` where its text says
    /// `requests`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "requests" | "request" => Some(Self::Requests),
            "content-bytes" => Some(Self::ContentBytes),
            "concurrent-requests" => Some(Self::ConcurrentRequests),
            _ => None,
        }
    }
}

impl Scope {
    /// The scope's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Shared => "shared",
            Self::Global => "global",
        }
    }

    /// The scope of that name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::User, Self::Shared, Self::Global].into_iter().find(|scope| scope.name() == name)
    }
}
