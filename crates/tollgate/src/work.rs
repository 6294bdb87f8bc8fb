//! Buffers that outlive a request, so that deciding the next one allocates nothing.

use crate::gate::{DecisionBuffers, SingleVerdict, recycle_vec};
use crate::{Row, Verdict};
use tollgate_core::LimitParams;
use tollgate_policy::policy::Selection;
use tollgate_store::Answers;

/// One per thread, or per connection; made once, passed to every call.
#[derive(Debug, Default)]
pub struct Work {
    pub(crate) selection: Selection,
    pub(crate) answers: Answers,
    pub(crate) verdicts: Vec<SingleVerdict>,
    /// Numbers that only this request has.
    pub(crate) params: Vec<LimitParams>,
    /// Always empty; it is here for its memory.
    pub(crate) rows: Vec<Row<'static>>,
    pub(crate) decision_buffers: DecisionBuffers,
}

impl Work {
    /// The answers to the last [batch](crate::Gate::check_batch), in the order asked.
    pub fn verdicts(&self) -> &[SingleVerdict] {
        &self.verdicts
    }

    /// Takes the buffers of a verdict that has been rendered.
    pub fn recycle(&mut self, verdict: Verdict<'_>) {
        self.rows = recycle_vec(verdict.rows);
    }
}
