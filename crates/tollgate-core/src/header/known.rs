//! What answers have in common: of the same rows all but a few figures is the same again.

use super::profile::name::line;
use super::{Row, Unit, write};
use alloc::{string::String, vec::Vec};
use core::ops::Range;

/// What the last rows had in common with the next ones, most often: all but what is left of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) rows: Vec<KnownRow>,
    /// The line with all policies, and how the next one begins.
    pub(super) lists: Piece,
    /// Whether a row had a partition, which is a key's, and so seldom the next one's.
    has_partition: bool,
}

#[derive(Clone, Debug)]
pub(super) struct KnownRow {
    name: String,
    limit: u64,
    unit: Unit,
    window_us: Option<u64>,
    /// How the row's member of the list of what is left begins, after a comma unless it is the first.
    pub(super) member: Vec<u8>,
    /// The line with its limit, and how the next one begins, which says what remains.
    pub(super) limit_line: Piece,
    /// The end of a line, and one with its policy.
    pub(super) policy_line: Piece,
}

/// Bytes with a whole value among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) value: Range<usize>,
}

/// What is remembered makes no difference to what is rendered.
impl PartialEq for Known {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Known {}

impl Known {
    pub(super) const fn new() -> Self {
        let lists = Piece { bytes: Vec::new(), value: 0..0 };
        Self { rows: Vec::new(), lists, has_partition: false }
    }

    /// Has these rows known.
    pub(super) fn see(&mut self, rows: &[Row<'_>]) {
        if !self.are(rows) {
            self.learn(rows);
        }
    }

    fn are(&self, rows: &[Row<'_>]) -> bool {
        let is_of = |(known, row): (&KnownRow, &Row<'_>)| {
            known.limit == row.limit
                && known.window_us == row.window_us
                && known.unit == row.unit
                && row.partition.is_none()
                && known.name == row.name
        };
        let may_be = !self.has_partition && self.rows.len() == rows.len();
        may_be && self.rows.iter().zip(rows).all(is_of)
    }

    #[cold]
    fn learn(&mut self, rows: &[Row<'_>]) {
        self.rows.clear();
        self.has_partition = rows.iter().any(|row| row.partition.is_some());
        self.lists = Piece::of(b"", line::POLICY.opening, |out| {
            for (n, row) in rows.iter().enumerate() {
                name(out, n, row);
                policy(out, row);
                partition(out, row);
            }
        });
        self.lists.bytes.extend_from_slice(line::RATELIMIT.opening.as_bytes());
        for (n, row) in rows.iter().enumerate() {
            let mut member = Vec::new();
            name(&mut member, n, row);
            member.extend_from_slice(b";r=");
            let limit = |out: &mut Vec<u8>| write::uint(out, row.limit);
            let mut limit_line = Piece::of(b"", line::X_LIMIT.opening, limit);
            limit_line.bytes.extend_from_slice(line::X_REMAINING.opening.as_bytes());
            let policy = |out: &mut Vec<u8>| unnamed_policy(out, row);
            let policy_line = Piece::of(b"\r\n", line::X_POLICY.opening, policy);
            self.rows.push(KnownRow {
                name: row.name.into(),
                limit: row.limit,
                unit: row.unit,
                window_us: row.window_us,
                member,
                limit_line,
                policy_line,
            });
        }
    }
}

impl Piece {
    /// A line that begins with `opening` and whose value is what `write` appends, after `before`.
    fn of(before: &[u8], opening: &str, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = [before, opening.as_bytes()].concat();
        let start = bytes.len();
        write(&mut bytes);
        let value = start..bytes.len();
        bytes.extend_from_slice(b"\r\n");
        Self { bytes, value }
    }
}

fn name(out: &mut Vec<u8>, place: usize, row: &Row<'_>) {
    if place > 0 {
        out.extend_from_slice(b", ");
    }
    write::string(out, row.name);
}

/// `;q=100;w=60`: what a policy says after its name.
fn policy(out: &mut Vec<u8>, row: &Row<'_>) {
    write::parameter(out, b";q=", row.limit);
    if row.unit != Unit::Requests {
        out.extend_from_slice(b";qu=");
        write::string(out, row.unit.name());
    }
    window(out, row);
}

/// `100;w=60`: how a policy looked before policies had names.
pub(super) fn unnamed_policy(out: &mut Vec<u8>, row: &Row<'_>) {
    write::uint(out, row.limit);
    window(out, row);
}

fn window(out: &mut Vec<u8>, row: &Row<'_>) {
    if let Some(window_us) = row.window_us {
        // A window of zero seconds is malformed, so one shorter than a second counts as a second.
        write::parameter(out, b";w=", window_us.div_ceil(super::US_PER_S).max(1));
    }
}

/// Which of the limit's keys it is, where the row says so.
#[inline]
pub(super) fn partition(out: &mut Vec<u8>, row: &Row<'_>) {
    if let Some(partition) = row.partition {
        out.extend_from_slice(b";pk=");
        write::binary(out, partition);
    }
}
