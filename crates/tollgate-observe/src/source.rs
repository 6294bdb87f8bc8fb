//! The node that background threads report about.

use crate::keys::KeySecrets;
use crate::metrics::{Metrics, MetricsSnapshot};
use tollgate::engine::RulesGuard;

/// The data that background threads (metrics push, usage trail) read of their node.
pub trait ObservedNode: Send + Sync + 'static {
    /// The rules in force.
    fn rules(&self) -> RulesGuard;

    /// The secrets that hash keys.
    fn keys(&self) -> &KeySecrets;

    /// The counters of front ends.
    fn metrics(&self) -> &Metrics;

    /// The current counters of the engine and the store.
    fn snapshot(&self) -> MetricsSnapshot;
}
