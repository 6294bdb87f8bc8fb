//! The engine trait: a gate with its clock, timer and task spawner, and a ready-made one.

mod standalone;
pub(crate) mod timer;

pub use standalone::Standalone;

use crate::Verifier;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tollgate::engine::policy::Facts;
use tollgate::engine::{Gate, Rules};
use tollgate::store::Store;

/// A task that runs after a response. No request waits for it.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A gate with its clock, timer and spawner. A process has one, shared by `Arc`.
pub trait Engine: Send + Sync + 'static {
    /// The store of the gate.
    type Store: Store + 'static;

    /// The gate.
    fn gate(&self) -> &Gate<Self::Store>;

    /// The time, in microseconds since the Unix epoch.
    fn now_us(&self) -> u64;

    /// Sets the tier of the client, if the rules know it. Override it to look tiers up elsewhere.
    fn identify<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        facts: &'a mut Facts<'r>,
        _now_us: u64,
    ) -> impl Future<Output = ()> + Send {
        rules.identify(facts);
        ready(())
    }

    /// The verifier of tokens, if the policy has `jwt`.
    fn verifier(&self) -> Option<Arc<Verifier>> {
        None
    }

    /// Sleeps for `delay`.
    fn sleep(&self, delay: Duration) -> Task {
        timer::sleep(delay)
    }

    /// Runs a task that could not finish at once. If it is dropped, slots are free when their `ttl`
    /// has passed, and estimates count.
    fn spawn(&self, task: Task);
}
