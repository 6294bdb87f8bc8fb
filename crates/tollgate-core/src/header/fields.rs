//! A buffer of rendered fields that is kept between answers.

use super::{Row, Unit, profile::name::Name, profile::name::line, retry_after_seconds, write};
use alloc::{string::String, vec::Vec};
use core::ops::Range;

/// Rendered fields: one buffer for all lines and where each value lies in it, so one that is used again never allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    lines: Vec<u8>,
    places: Vec<(&'static str, Range<usize>)>,
    known: Known,
}

/// What the last rows had in common with the next ones, most often: all but what is left of each.
#[derive(Clone, Debug, Default)]
struct Known {
    rows: Vec<KnownRow>,
    policies: Vec<u8>,
    /// Whether a row had a partition, which is a key's, and so seldom the next one's.
    has_partition: bool,
}

#[derive(Clone, Debug)]
struct KnownRow {
    name: String,
    limit: u64,
    unit: Unit,
    window_us: Option<u64>,
    /// How the row's member of a list begins: its name in quotes, after a comma unless it is the first.
    opening: Vec<u8>,
}

/// What is remembered makes no difference to what is rendered.
impl PartialEq for Known {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Known {}

impl Fields {
    /// An empty buffer, which allocates when first written to.
    pub const fn new() -> Self {
        let known = Known { rows: Vec::new(), policies: Vec::new(), has_partition: false };
        Self { lines: Vec::new(), places: Vec::new(), known }
    }

    /// Forgets the fields and keeps the room they took.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.places.clear();
    }

    /// How many fields there are.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All of them as lines of HTTP/1, names in lower case: `ratelimit: "a";r=1\r\n`.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Name of each field, in the order of writing, and where among the [`lines`](Self::lines) its value lies.
    pub fn places(&self) -> impl ExactSizeIterator<Item = (&'static str, Range<usize>)> {
        self.places.iter().cloned()
    }

    /// Name and value of each field, in the order of writing. Values are printable ASCII.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &str)> {
        self.places()
            .map(|(name, place)| (name, str::from_utf8(&self.lines[place]).unwrap_or_default()))
    }

    /// Adds `Retry-After` for a refusal that this wait can help, in whole seconds.
    pub fn push_retry_after(&mut self, retry_after_us: u64) {
        self.push(line::RETRY_AFTER, |out| write::uint(out, retry_after_seconds(retry_after_us)));
    }

    /// Adds both lists that have a member for each row: the policies, with what `policy` appends after a row's name, and what is left of each, with
    /// what `rest` appends. The former are written only where they are not known.
    pub(super) fn push_lists(
        &mut self,
        rows: &[Row<'_>],
        policy: impl Fn(&mut Vec<u8>, &Row<'_>),
        rest: impl Fn(&mut Vec<u8>, &Row<'_>),
    ) {
        if !self.known.are(rows) {
            self.known.learn(rows, policy);
        }
        let known = core::mem::take(&mut self.known);
        self.push(line::POLICY, |out| out.extend_from_slice(&known.policies));
        self.push(line::RATELIMIT, |out| {
            for (known, row) in known.rows.iter().zip(rows) {
                out.extend_from_slice(&known.opening);
                rest(out, row);
                partition(out, row);
            }
        });
        self.known = known;
    }

    /// Adds a field whose value is what `write` appends.
    pub(super) fn push(&mut self, name: Name, write: impl FnOnce(&mut Vec<u8>)) {
        self.lines.extend_from_slice(name.opening.as_bytes());
        let start = self.lines.len();
        write(&mut self.lines);
        self.places.push((name.text, start..self.lines.len()));
        self.lines.extend_from_slice(b"\r\n");
    }
}

impl Known {
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

    fn learn(&mut self, rows: &[Row<'_>], policy: impl Fn(&mut Vec<u8>, &Row<'_>)) {
        self.policies.clear();
        self.rows.clear();
        self.has_partition = rows.iter().any(|row| row.partition.is_some());
        for row in rows {
            let mut opening = Vec::new();
            if !self.rows.is_empty() {
                opening.extend_from_slice(b", ");
            }
            write::string(&mut opening, row.name);
            self.policies.extend_from_slice(&opening);
            policy(&mut self.policies, row);
            partition(&mut self.policies, row);
            self.rows.push(KnownRow {
                name: row.name.into(),
                limit: row.limit,
                unit: row.unit,
                window_us: row.window_us,
                opening,
            });
        }
    }
}

fn partition(out: &mut Vec<u8>, row: &Row<'_>) {
    if let Some(partition) = row.partition {
        out.extend_from_slice(b";pk=");
        write::binary(out, partition);
    }
}
