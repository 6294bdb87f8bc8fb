//! An engine for a service of one's own.

use crate::{Engine, Task};
use std::fmt;
use std::sync::Arc;
use tollgate::{Clock, Gate, MemoryStore, ProcessClock, Store};

/// A gate and a clock, which is all that most services need.
pub struct Standalone<S = MemoryStore> {
    gate: Gate<S>,
    clock: Arc<dyn Clock>,
    later: Arc<Later>,
}

type Later = dyn Fn(Task) + Send + Sync;

impl<S: Store + 'static> Standalone<S> {
    /// By the process's clock.
    pub fn new(gate: Gate<S>) -> Self {
        Self { gate, clock: Arc::new(ProcessClock), later: Arc::new(spawn) }
    }

    /// By another clock: a [`ManualClock`](tollgate::ManualClock) in tests.
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Has `later` run what is left to do after an answer, on a runtime that is not tokio. Only a shared store leaves anything.
    pub fn with_runtime(mut self, later: impl Fn(Task) + Send + Sync + 'static) -> Self {
        self.later = Arc::new(later);
        self
    }
}

/// Where there is no runtime the task is dropped: what it would have ended, expires.
fn spawn(task: Task) {
    #[cfg(feature = "tokio")]
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(task);
        return;
    }
    drop(task);
}

impl<S: Store + 'static> Engine for Standalone<S> {
    type Store = S;

    fn gate(&self) -> &Gate<S> {
        &self.gate
    }

    fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    fn later(&self, task: Task) {
        (self.later)(task);
    }
}

impl<S> fmt::Debug for Standalone<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standalone").finish_non_exhaustive()
    }
}
