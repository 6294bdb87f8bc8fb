//! The ready-made engine for a service.

use super::timer;
use crate::{Engine, Task, Verifier};
use arc_swap::ArcSwapOption;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tollgate::MemoryStore;
use tollgate::engine::Gate;
use tollgate::store::{Clock, ProcessClock, Store};

/// An engine with a gate and a clock, which is all that most services need.
pub struct Standalone<S = MemoryStore> {
    gate: Gate<S>,
    clock: Arc<dyn Clock>,
    tokens: ArcSwapOption<Verifier>,
    spawn: Arc<SpawnFn>,
    sleep: Arc<SleepFn>,
}

type SpawnFn = dyn Fn(Task) + Send + Sync;
type SleepFn = dyn Fn(Duration) -> Task + Send + Sync;

impl<S: Store + 'static> Standalone<S> {
    /// An engine with the process's clock.
    pub fn new(gate: Gate<S>) -> Self {
        let clock = Arc::new(ProcessClock);
        let tokens = ArcSwapOption::empty();
        Self { gate, clock, tokens, spawn: Arc::new(spawn), sleep: Arc::new(timer::sleep) }
    }

    /// Sets the clock: a [`ManualClock`](tollgate::ManualClock) in tests.
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Runs on a runtime other than tokio: `spawn` runs tasks after a response, which only a shared
    /// store needs, and `sleep` delays requests in a queue.
    pub fn with_runtime(
        mut self,
        spawn: impl Fn(Task) + Send + Sync + 'static,
        sleep: impl Fn(Duration) -> Task + Send + Sync + 'static,
    ) -> Self {
        (self.spawn, self.sleep) = (Arc::new(spawn), Arc::new(sleep));
        self
    }

    /// Sets the verifier of tokens, for attributes from claims.
    pub fn with_tokens(self, tokens: Verifier) -> Self {
        self.set_tokens(tokens);
        self
    }

    /// Replaces the verifier of tokens.
    pub fn set_tokens(&self, tokens: Verifier) {
        self.tokens.store(Some(Arc::new(tokens)));
    }
}

/// Without a runtime the task is dropped, and the charges that it would have ended expire.
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

    fn verifier(&self) -> Option<Arc<Verifier>> {
        self.tokens.load_full()
    }

    fn sleep(&self, delay: Duration) -> Task {
        (self.sleep)(delay)
    }

    fn spawn(&self, task: Task) {
        (self.spawn)(task);
    }
}

impl<S> fmt::Debug for Standalone<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standalone").finish_non_exhaustive()
    }
}
