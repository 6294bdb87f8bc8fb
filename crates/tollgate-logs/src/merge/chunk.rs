//! Chunks of requests: values copied from their lines, in order of time.

use crate::entry::{Entry, FIELDS, Field};
use std::ops::Range;

/// The most bytes of values in a chunk.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// Neighbouring requests of a file.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    text: String,
    rows: Vec<StoredEntry>,
    attributes: Vec<(usize, Range<u32>)>,
    /// The index of the next row.
    next: usize,
    is_sorted: bool,
}

#[derive(Debug)]
struct StoredEntry {
    time_us: u64,
    duration_us: Option<u64>,
    bytes: Option<u64>,
    status: u16,
    values: [(u32, u32); FIELDS],
    attributes: Range<u32>,
}

/// One request, in the order of time.
#[derive(Clone, Copy, Debug)]
pub struct Record<'c> {
    chunk: &'c Chunk,
    row: &'c StoredEntry,
}

impl Chunk {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.rows.clear();
        self.attributes.clear();
        (self.next, self.is_sorted) = (0, true);
    }

    pub(crate) fn is_full(&self, rows_max: usize) -> bool {
        self.rows.len() >= rows_max || self.text.len() >= TEXT_BYTES_MAX
    }

    /// Adds a request, with all attributes and the fields in the bit set `fields`.
    pub(crate) fn push(&mut self, entry: &Entry<'_>, fields: u16) {
        let Self { text, rows, attributes, .. } = self;
        let mut keep = |value: &str| {
            let start = text.len() as u32;
            text.push_str(value);
            (start, text.len() as u32)
        };
        let mut values = [(0, 0); FIELDS];
        for (place, value) in entry.values.iter().enumerate() {
            if fields & (1 << place) != 0 && !value.is_empty() {
                values[place] = keep(value);
            }
        }
        let first = attributes.len() as u32;
        for (place, value) in &entry.attributes {
            let (start, end) = keep(value);
            attributes.push((*place, start..end));
        }
        let Entry { time_us, duration_us, bytes, status, .. } = *entry;
        self.is_sorted &= rows.last().is_none_or(|last| last.time_us <= time_us);
        let attributes = first..attributes.len() as u32;
        rows.push(StoredEntry { time_us, duration_us, bytes, status, values, attributes });
    }

    /// Sorts the rows by time; rows with equal times keep their order.
    pub(crate) fn sort(&mut self) {
        if !self.is_sorted {
            self.rows.sort_by_key(|row| row.time_us);
            self.is_sorted = true;
        }
    }

    /// The time of the next row.
    #[inline]
    pub(crate) fn head_us(&self) -> Option<u64> {
        self.rows.get(self.next).map(|row| row.time_us)
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Record<'_>> {
        let row = self.rows.get(self.next)?;
        self.next += 1;
        Some(Record { chunk: self, row })
    }
}

impl<'c> Record<'c> {
    /// The start of the request, in microseconds since 1970.
    #[inline]
    pub fn time_us(&self) -> u64 {
        self.row.time_us
    }

    /// The status of the response; zero if the log has none.
    pub fn status(&self) -> u16 {
        self.row.status
    }

    /// The duration of the response.
    pub fn duration_us(&self) -> Option<u64> {
        self.row.duration_us
    }

    /// The bytes of the response.
    pub fn bytes(&self) -> Option<u64> {
        self.row.bytes
    }

    /// The value of a field; empty if the log does not have it, or if it was not requested.
    #[inline]
    pub fn value(&self, field: Field) -> &'c str {
        let (start, end) = self.row.values[field as usize];
        &self.chunk.text[start as usize..end as usize]
    }

    /// The attributes of the line, by their index in
    /// [`ReadOptions::attributes`](crate::ReadOptions).
    pub fn attributes(&self) -> impl DoubleEndedIterator<Item = (usize, &'c str)> + use<'c> {
        let Range { start, end } = self.row.attributes;
        let chunk = self.chunk;
        chunk.attributes[start as usize..end as usize].iter().map(
            |(place, Range { start, end })| (*place, &chunk.text[*start as usize..*end as usize]),
        )
    }
}
