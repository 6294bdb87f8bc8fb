//! A buffer of rendered fields that is kept between answers.

use super::{profile::name, retry_after_seconds, write};
use alloc::{string::String, vec::Vec};

/// Rendered fields: one string for all values and where each ends, so a reused buffer never allocates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    text: String,
    ends: Vec<(&'static str, usize)>,
}

impl Fields {
    /// An empty buffer, which allocates when first written to.
    pub const fn new() -> Self {
        Self { text: String::new(), ends: Vec::new() }
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

    /// Adds a field whose value is what `write` appends.
    pub(super) fn push(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push((name, self.text.len()));
    }
}
