//! Buffers that outlive a request, so that deciding the next one allocates nothing.

use crate::gate::{Decided, QuestionMemory, emptied};
use crate::{Row, Verdict};
use tollgate_core::Numbers;
use tollgate_policy::policy::Selection;
use tollgate_store::Answers;

/// One per thread, or per connection; made once, passed to every call.
#[derive(Debug, Default)]
pub struct Work {
    pub(crate) selection: Selection,
    pub(crate) answers: Answers,
    pub(crate) decided: Vec<Decided>,
    /// Numbers that only this request has.
    pub(crate) numbers: Vec<Numbers>,
    /// Always empty; it is here for its memory.
    pub(crate) rows: Vec<Row<'static>>,
    pub(crate) memory: QuestionMemory,
}

impl Work {
    /// The answers to the last [batch](crate::Gate::check_batch), in the order asked.
    pub fn decided(&self) -> &[Decided] {
        &self.decided
    }

    /// Takes the buffers of a verdict that has been rendered.
    pub fn recycle(&mut self, verdict: Verdict<'_>) {
        self.rows = emptied(verdict.rows);
    }
}
