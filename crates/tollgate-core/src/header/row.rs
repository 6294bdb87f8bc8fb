//! Rows: the figures of one limit in the headers of one response.

use crate::Outcome;
use core::cmp::Reverse;

/// The figures of one limit in one response. Limits that are undisclosed or in shadow have no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The limit's name: a [`valid_name`], checked when the policy is loaded.
    pub name: &'a str,
    /// The capacity, draft-11 `q`.
    pub limit: u64,
    /// The unit of the capacity.
    pub unit: Unit,
    /// The window of the capacity; `None` if capacity does not come back with time.
    pub window_us: Option<u64>,
    /// The units available now, draft-11 `r`.
    pub remaining: u64,
    /// The time until more than `remaining` units are available, draft-11 `t`; `None` leaves it
    /// out.
    pub more_after_us: Option<u64>,
    /// The time until the limit is as good as unused: the reset of older profiles.
    pub reset_after_us: u64,
    /// Whether this limit alone refuses.
    pub refused: bool,
    /// The time until a refused request would be admitted; `None` if no wait helps.
    pub retry_after_us: Option<u64>,
    /// Draft-11 `pk`: the key of the limit, without secrets.
    pub partition: Option<&'a [u8]>,
    /// Discord's bucket: a stable hash of limit and key.
    pub bucket: u64,
    /// The requests that share the capacity.
    pub scope: Scope,
}

/// The unit of a quota, draft-11 `qu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, the default of a policy without a unit.
    #[default]
    Requests,
    /// Bytes of content.
    ContentBytes,
    /// Requests in flight at the same time.
    ConcurrentRequests,
}

/// The requests that share a limit's capacity, in Discord's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// The limit has a key, so each client has its own capacity.
    #[default]
    User,
    /// The limit has no key, so all clients share one capacity.
    Shared,
    /// All routes share the capacity. This is read from other servers, but never written.
    Global,
}

impl<'a> Row<'a> {
    /// Creates the row of an outcome: in requests, without a partition, of a limit with a key.
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

    /// Returns the row with another unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Returns the row with a partition, the key of the limit.
    pub const fn partition(mut self, partition: &'a [u8]) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Returns the row with a stable hash of its limit and key.
    pub const fn bucket(mut self, bucket: u64) -> Self {
        self.bucket = bucket;
        self
    }

    /// Returns the row with another scope.
    pub const fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// The row for headers with room for one limit. Of rows that refuse, it is the one with the longest
/// wait, and an endless wait is the longest. If none refuses, it is the one with the least
/// remaining. The first of equals wins.
pub fn tightest<'r, 'a>(rows: &'r [Row<'a>]) -> Option<&'r Row<'a>> {
    rows.get(tightest_at(rows.iter().copied())?)
}

/// The index of the [`tightest`] row.
#[inline]
pub(super) fn tightest_at<'a>(rows: impl Iterator<Item = Row<'a>> + Clone) -> Option<usize> {
    // Compares remaining units: whole rows would be copied.
    if rows.clone().all(|row| !row.refused) {
        let places = rows.map(|row| row.remaining).enumerate();
        return Some(places.min_by_key(|(_, remaining)| *remaining)?.0);
    }
    let key = |row: Row<'_>| tightness(row.refused, row.retry_after_us, row.remaining);
    Some(rows.enumerate().min_by_key(|(_, row)| key(*row))?.0)
}

/// Orders limits by tightness, the tightest first. Limits that refuse come first, by the longest
/// wait; an endless wait is the longest. Other limits follow by remaining units. A response that
/// names one limit names the first of the tightest.
#[inline]
pub fn tightness(refused: bool, retry_after_us: Option<u64>, remaining: u64) -> impl Ord {
    if refused {
        (false, Reverse((retry_after_us.is_none(), retry_after_us)), 0)
    } else {
        (true, Reverse((false, None)), remaining)
    }
}

/// Whether a limit's name can be in a header: not empty, and printable ASCII only.
pub fn valid_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

impl Unit {
    /// The registered name of the unit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::ContentBytes => "content-bytes",
            Self::ConcurrentRequests => "concurrent-requests",
        }
    }

    /// Finds a unit by name. The draft's registry table has `request` where its text has
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

    /// Finds a scope by name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::User, Self::Shared, Self::Global].into_iter().find(|scope| scope.name() == name)
    }
}
