//! Buffers that outlive a request, so that deciding the next one allocates nothing.

use crate::{Row, Verdict};
use tollgate_policy::policy::Selection;
use tollgate_store::Answers;

/// One per thread, or per connection; made once, passed to every call.
#[derive(Debug, Default)]
pub struct Work {
    pub(crate) selection: Selection,
    pub(crate) answers: Answers,
    /// Always empty; it is here for its memory.
    pub(crate) rows: Vec<Row<'static>>,
}

impl Work {
    /// Takes the buffers of a verdict that has been rendered.
    pub fn recycle(&mut self, verdict: Verdict<'_>) {
        let mut rows = verdict.rows;
        rows.clear();
        // Collecting an empty vector into one of the same layout keeps its memory; only the lifetime changes.
        self.rows = rows.into_iter().map(|_| unreachable!("it was emptied")).collect();
    }
}
