//! Reusable buffers, so that deciding the next request allocates nothing.

use crate::engine::{Row, Verdict};
use crate::gate::{DecisionBuffers, SingleVerdict, recycle_vec};
use std::cell::RefCell;
use tollgate_core::LimitParams;
use tollgate_policy::policy::Selection;
use tollgate_store::Answers;

/// Buffers of one thread or connection: created once, passed to every call.
#[derive(Debug, Default)]
pub struct GateBuffers {
    pub(crate) selection: Selection,
    pub(crate) answers: Answers,
    pub(crate) verdicts: Vec<SingleVerdict>,
    /// Parameters used by this request only.
    pub(crate) params: Vec<LimitParams>,
    /// Always empty; kept for its allocation.
    pub(crate) rows: Vec<Row<'static>>,
    pub(crate) decision_buffers: DecisionBuffers,
}

impl GateBuffers {
    /// The answers to the last [batch](crate::engine::Gate::check_batch), in the order asked.
    pub fn verdicts(&self) -> &[SingleVerdict] {
        &self.verdicts
    }

    /// Takes back the rows of a verdict after it was rendered.
    #[inline]
    pub fn recycle(&mut self, verdict: Verdict<'_>) {
        self.rows = recycle_vec(verdict.rows);
    }
}

/// Limit of values in a pool: the usual number of requests that wait for a store on one thread.
const KEPT_MAX: usize = 64;

/// A pool of buffers for one thread. A request takes one while it is decided and puts it back.
///
/// ```
/// use tollgate::engine::{BufferPool, GateBuffers};
///
/// let spares: BufferPool<GateBuffers> = BufferPool::new();
/// let buffers = spares.take();
/// spares.put(buffers);
/// ```
#[derive(Debug, Default)]
pub struct BufferPool<T>(RefCell<Vec<Box<T>>>);

impl<T: Default> BufferPool<T> {
    /// Creates an empty pool.
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Takes the value that was put last, or a new one.
    #[inline]
    pub fn take(&self) -> Box<T> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps a value for the next request.
    #[inline]
    pub fn put(&self, spare: Box<T>) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push(spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_returns_the_last_value_and_the_pool_is_bounded() {
        let spares: BufferPool<usize> = BufferPool::new();
        assert_eq!(*spares.take(), 0);
        (1..=KEPT_MAX + 5).for_each(|n| spares.put(Box::new(n)));
        assert_eq!(*spares.take(), KEPT_MAX);
        let left = std::iter::from_fn(|| Some(*spares.take()).filter(|n| *n > 0)).count();
        assert_eq!(left, KEPT_MAX - 1);
    }
}
