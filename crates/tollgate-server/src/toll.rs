//! A node as what decides over HTTP.

use crate::Node;
use crate::storage::Storage;
use std::sync::Arc;
use tollgate_policy::facts::Facts;
use tollgate_tower::{Engine, Task, Verifier};

impl Engine for Node {
    type Store = Storage;

    fn gate(&self) -> &crate::node::NodeGate {
        &self.gate
    }

    fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    fn tier(
        &self,
        facts: &Facts<'_>,
        now_us: u64,
    ) -> impl Future<Output = Option<Arc<str>>> + Send {
        Self::tier(self, facts, now_us)
    }

    fn verifier(&self) -> Option<Arc<Verifier>> {
        Self::tokens(self)
    }

    /// On the worker's own runtime. A worker that is ending has none, and then it is as if the node
    /// had crashed.
    fn spawn(&self, task: Task) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(task);
        }
    }
}
