//! A cache of rendered bytes: with the same limits, only a few numbers differ between responses.

use super::profile::name::line;
use super::{Row, SF_INTEGER_MAX, US_PER_S, Unit, write};
use crate::decimal::write_decimal;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// The number of cached sets of rows: enough for a few alternating tiers or paths.
const SETS: usize = 4;

/// The bytes that responses with the same limits share: all but the remaining units and the reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderCache {
    sets: Vec<CachedRows>,
    /// The index of the rows last selected.
    at: usize,
    /// The reset last selected, and its line after the end of a line: many responses of a second
    /// have the same.
    reset_s: u64,
    pub(crate) reset: CachedBytes,
}

/// The shared bytes of one set of rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedRows {
    /// The rows up to `len`, then unused rows of earlier sets, kept for their memory.
    rows: Vec<CachedRow>,
    len: usize,
    /// The line with all policies, and the start of the next line.
    pub(crate) lists: CachedBytes,
    /// The end of `RateLimit`, after the numbers of the last member.
    pub(crate) list_end: CachedBytes,
    /// The most bytes of all members.
    pub(crate) members_max: usize,
    /// Whether a row had a partition. Partitions differ between keys, so such rows are not reused.
    has_partition: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CachedRow {
    name: String,
    limit: u64,
    unit: Unit,
    window_us: Option<u64>,
    /// The bytes of `RateLimit` before the row's numbers: the partition of the row before it, a
    /// comma, and the name.
    pub(crate) member: Vec<u8>,
    /// The line with the limit, and the start of the line with the remaining units.
    pub(crate) limit_line: CachedBytes,
    /// The line with the policy.
    pub(crate) policy_line: CachedBytes,
}

/// Bytes, and the range of a whole header value in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) value: Range<usize>,
}

/// Always equal: the cache never changes the rendered headers.
impl PartialEq for RenderCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RenderCache {}

impl RenderCache {
    pub(crate) const fn new() -> Self {
        let reset = CachedBytes { bytes: Vec::new(), value: 0..0 };
        Self { sets: Vec::new(), at: 0, reset_s: 0, reset }
    }

    /// Selects the cached bytes of these rows, and renders them if they are new.
    #[inline]
    pub(crate) fn select<'r>(&mut self, rows: impl ExactSizeIterator<Item = Row<'r>> + Clone) {
        let is_of = |set: &CachedRows| set.matches_rows(rows.clone());
        if self.sets.get(self.at).is_some_and(is_of) {
            return;
        }
        match self.sets.iter().position(is_of) {
            Some(at) => self.at = at,
            None => self.learn(rows),
        }
    }

    /// Selects the line of a reset.
    pub(crate) fn select_reset(&mut self, reset_s: u64) {
        if self.reset_s != reset_s || self.reset.bytes.is_empty() {
            self.reset_s = reset_s;
            let digits = |out: &mut Vec<u8>| write::uint(out, reset_s);
            self.reset.fill(b"\r\n", line::X_RESET.opening, "", digits);
        }
    }

    /// The cached bytes of the rows last [selected](Self::select).
    #[inline]
    pub(crate) fn last(&self) -> Option<&CachedRows> {
        self.sets.get(self.at)
    }

    #[cold]
    fn learn<'r>(&mut self, rows: impl ExactSizeIterator<Item = Row<'r>> + Clone) {
        if self.sets.len() < SETS {
            self.at = self.sets.len();
            self.sets.push(CachedRows::default());
        } else {
            self.at = (self.at + 1) % SETS;
        }
        if let Some(set) = self.sets.get_mut(self.at) {
            set.learn(rows);
        }
    }
}

impl CachedRows {
    #[inline]
    pub(crate) fn rows(&self) -> &[CachedRow] {
        &self.rows[..self.len]
    }

    #[inline]
    fn matches_rows<'r>(&self, rows: impl ExactSizeIterator<Item = Row<'r>>) -> bool {
        let is_of = |(known, row): (&CachedRow, Row<'_>)| {
            known.limit == row.limit
                && known.window_us == row.window_us
                && known.unit == row.unit
                && row.partition.is_none()
                && known.name == row.name
        };
        let may_be = !self.has_partition && self.len == rows.len();
        may_be && self.rows().iter().zip(rows).all(is_of)
    }

    fn learn<'r>(&mut self, rows: impl ExactSizeIterator<Item = Row<'r>> + Clone) {
        self.has_partition = rows.clone().any(|row| row.partition.is_some());
        self.lists.fill(b"", line::POLICY.opening, line::RATELIMIT.opening, |out| {
            for (n, row) in rows.clone().enumerate() {
                name(out, n, &row);
                policy(out, &row);
                partition(out, &row);
            }
        });
        self.len = rows.len();
        self.rows.resize_with(self.len.max(self.rows.len()), CachedRow::default);
        let (mut before, mut members_max) = (None, 0);
        for (known, row) in self.rows.iter_mut().zip(rows) {
            known.learn(before.as_ref(), &row);
            members_max += known.member.len() + NUMBERS_MAX;
            before = Some(row);
        }
        self.members_max = members_max;
        self.list_end.fill(b"", "", "", |out| before.iter().for_each(|row| partition(out, row)));
    }
}

impl CachedRow {
    fn learn(&mut self, before: Option<&Row<'_>>, row: &Row<'_>) {
        self.name.clear();
        self.name.push_str(row.name);
        (self.limit, self.unit, self.window_us) = (row.limit, row.unit, row.window_us);
        self.member.clear();
        if let Some(before) = before {
            partition(&mut self.member, before);
        }
        begin_member(&mut self.member, usize::from(before.is_some()), row);
        let limit = |out: &mut Vec<u8>| write::uint(out, row.limit);
        self.limit_line.fill(b"", line::X_LIMIT.opening, line::X_REMAINING.opening, limit);
        let policy = |out: &mut Vec<u8>| unnamed_policy(out, row);
        self.policy_line.fill(b"", line::X_POLICY.opening, "", policy);
    }
}

impl CachedBytes {
    /// Writes a line that begins with `opening` and has the value that `write` appends, between
    /// `before` and `after`.
    fn fill(
        &mut self,
        before: &[u8],
        opening: &str,
        after: &str,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let Self { bytes, value } = self;
        bytes.clear();
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(opening.as_bytes());
        let start = bytes.len();
        write(bytes);
        *value = start..bytes.len();
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(after.as_bytes());
    }
}

/// Appends `"name";r=`: a member of `RateLimit`, up to its numbers.
pub(crate) fn begin_member(out: &mut Vec<u8>, place: usize, row: &Row<'_>) {
    name(out, place, row);
    out.extend_from_slice(b";r=");
}

/// The room for the numbers of a member: `;t=` and two numbers of up to 15 digits, which are
/// written eight at a time.
pub(crate) const NUMBERS_MAX: usize = 2 * 16 + 3;

/// Writes `99;t=42` to `out` from `at` on: the numbers of a member of `RateLimit`. Returns where
/// they end. There must be room for [`NUMBERS_MAX`] bytes.
#[inline(always)]
pub(crate) fn write_numbers(
    out: &mut [u8],
    at: usize,
    remaining: u64,
    more_after_us: Option<u64>,
) -> usize {
    let end = write_decimal(out, at, remaining.min(SF_INTEGER_MAX));
    let Some(more_after_us) = more_after_us else { return end };
    out[end..end + 3].copy_from_slice(b";t=");
    write_decimal(out, end + 3, more_after_us.div_ceil(US_PER_S))
}

pub(crate) fn name(out: &mut Vec<u8>, place: usize, row: &Row<'_>) {
    if place > 0 {
        out.extend_from_slice(b", ");
    }
    write::string(out, row.name);
}

/// Appends `;q=100;w=60`: a policy after its name.
pub(crate) fn policy(out: &mut Vec<u8>, row: &Row<'_>) {
    write::parameter(out, b";q=", row.limit);
    if row.unit != Unit::Requests {
        out.extend_from_slice(b";qu=");
        write::string(out, row.unit.name());
    }
    window(out, row);
}

/// Appends `100;w=60`: a policy as in drafts without names.
pub(crate) fn unnamed_policy(out: &mut Vec<u8>, row: &Row<'_>) {
    write::uint(out, row.limit);
    window(out, row);
}

fn window(out: &mut Vec<u8>, row: &Row<'_>) {
    if let Some(window_us) = row.window_us {
        write::parameter(out, b";w=", window_seconds(window_us));
    }
}

/// The window in seconds, at least one: a window of zero seconds would be malformed.
pub(crate) const fn window_seconds(window_us: u64) -> u64 {
    let seconds = window_us.div_ceil(super::US_PER_S);
    if seconds == 0 { 1 } else { seconds }
}

/// Appends the partition of the row, if it has one.
fn partition(out: &mut Vec<u8>, row: &Row<'_>) {
    if let Some(partition) = row.partition {
        out.extend_from_slice(b";pk=");
        write::binary(out, partition);
    }
}
