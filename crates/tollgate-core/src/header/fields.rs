//! A buffer of rendered fields that is kept between answers.

use super::{Row, Unit, profile::name, retry_after_seconds, write};
use alloc::{string::String, vec::Vec};

/// Rendered fields: one string for all values and where each ends, so a reused buffer never allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    text: String,
    ends: Vec<(&'static str, usize)>,
    policies: Policies,
}

/// The last list of policies: one answer's are most often the next one's, as they change with limits and not with what is left of them.
#[derive(Clone, Debug, Default)]
struct Policies {
    of: Vec<Policy>,
    text: String,
}

#[derive(Clone, Debug)]
struct Policy {
    name: String,
    limit: u64,
    unit: Unit,
    window_us: Option<u64>,
}

/// What is remembered makes no difference to what is rendered.
impl PartialEq for Policies {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Policies {}

impl Fields {
    /// An empty buffer, which allocates when first written to.
    pub const fn new() -> Self {
        Self {
            text: String::new(),
            ends: Vec::new(),
            policies: Policies { of: Vec::new(), text: String::new() },
        }
    }

    /// Forgets the fields and keeps the room they took.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// How many fields there are.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All values, one after the other.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Name and value of each field, in the order of writing. Values are printable ASCII.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name, end)| {
            let value = &self.text[start..end];
            start = end;
            (name, value)
        })
    }

    /// Adds `Retry-After` for a refusal that this wait can help, in whole seconds.
    pub fn push_retry_after(&mut self, retry_after_us: u64) {
        self.push(name::RETRY_AFTER, |text| {
            write::uint(text, retry_after_seconds(retry_after_us));
        });
    }

    /// Adds the policies of these rows, which `write` appends unless they are known.
    pub(super) fn push_policies(&mut self, rows: &[Row<'_>], write: impl FnOnce(&mut String)) {
        if !self.policies.are_of(rows) {
            self.policies.remember(rows, write);
        }
        self.text.push_str(&self.policies.text);
        self.ends.push((name::POLICY, self.text.len()));
    }

    /// Adds a field whose value is what `write` appends.
    pub(super) fn push(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push((name, self.text.len()));
    }
}

impl Policies {
    fn are_of(&self, rows: &[Row<'_>]) -> bool {
        let is_of = |(known, row): (&Policy, &Row<'_>)| {
            known.limit == row.limit
                && known.window_us == row.window_us
                && known.unit == row.unit
                && row.partition.is_none()
                && known.name == row.name
        };
        self.of.len() == rows.len() && self.of.iter().zip(rows).all(is_of)
    }

    fn remember(&mut self, rows: &[Row<'_>], write: impl FnOnce(&mut String)) {
        self.text.clear();
        write(&mut self.text);
        self.of.clear();
        // A partition is a key's, so that it is seldom the next one's.
        if rows.iter().all(|row| row.partition.is_none()) {
            self.of.extend(rows.iter().map(|row| Policy {
                name: row.name.into(),
                limit: row.limit,
                unit: row.unit,
                window_us: row.window_us,
            }));
        }
    }
}
