//! Buffers that outlive a request, so that deciding the next one allocates nothing.

use crate::{Row, Verdict};
use tollgate_policy::policy::Selection;
use tollgate_store::Answers;

/// One per thread, or per connection; made once, passed to every call.
#[derive(Debug, Default)]
pub struct Work<'g> {
    pub(crate) selection: Selection,
    pub(crate) answers: Answers,
    pub(crate) rows: Vec<Row<'g>>,
}

impl<'g> Work<'g> {
    /// Takes the buffers of a verdict that has been rendered.
    pub fn recycle(&mut self, verdict: Verdict<'g>) {
        self.rows = verdict.rows;
        self.rows.clear();
    }
}
