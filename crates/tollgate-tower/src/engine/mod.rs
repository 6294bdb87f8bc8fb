//! The engine trait: a gate with its clock, timer and task spawner, and a ready-made one.

mod standalone;
mod timer;

pub use standalone::Standalone;

use crate::Verifier;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tollgate::policy::Facts;
use tollgate::{Gate, Store};

/// Something to be done after an answer, which nobody waits for.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A gate and what it needs around it. A process has one, shared by `Arc`.
pub trait Engine: Send + Sync + 'static {
    /// Where the gate keeps its counts.
    type Store: Store + 'static;

    /// Decides.
    fn gate(&self) -> &Gate<Self::Store>;

    /// Says when, in microseconds since the Unix epoch.
    fn now_us(&self) -> u64;

    /// The tier of whoever the facts name, where neither the facts nor the rules know it.
    fn tier(
        &self,
        _facts: &Facts<'_>,
        _now_us: u64,
    ) -> impl Future<Output = Option<Arc<str>>> + Send {
        ready(None)
    }

    /// What verifies tokens, where the file in force has `jwt`.
    fn verifier(&self) -> Option<Arc<Verifier>> {
        None
    }

    /// Ends after `delay`, for requests that are held back.
    fn sleep(&self, delay: Duration) -> Task {
        timer::sleep(delay)
    }

    /// Has a task done that could not be done at once. One that is dropped instead costs what a
    /// crash would: slots are free when their time has passed, and estimates count.
    fn spawn(&self, task: Task);
}
