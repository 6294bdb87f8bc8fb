//! Supervisor: restarts the work of a thread when it panics. Meanwhile the node is not ready.

#[cfg(test)]
mod tests;

use crate::Node;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The delay before a restart grows, so that a panic that repeats at once does not keep a core
/// busy.
const RESTART_DELAY_MIN: Duration = Duration::from_millis(100);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(1);

/// Whether the work starts or restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    Restart,
}

/// Supervises the work of one thread.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// The name of the work in `/readyz` and in the log.
    subject: String,
    node: Option<Arc<Node>>,
    running: AtomicBool,
}

impl Supervisor {
    pub(crate) fn new(subject: String, node: Option<Arc<Node>>) -> Self {
        Self { subject, node, running: AtomicBool::new(true) }
    }

    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Called by the work once it runs, which ends the problem of an earlier panic.
    pub(crate) fn mark_running(&self) {
        if !self.running.swap(true, Relaxed) {
            tracing::info!(task = self.subject, "running again after a panic");
            if let Some(node) = &self.node {
                node.health.clear(&self.subject);
            }
        }
    }

    /// False between a panic and the next [`mark_running`](Self::mark_running).
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Relaxed)
    }

    /// Runs `work` until it returns without a panic. On a restart, `work` has to find out whether
    /// it is still wanted. Its state must be valid wherever a panic left it.
    pub(crate) fn run(&self, mut work: impl FnMut(Attempt)) {
        let (mut delay, mut attempt) = (RESTART_DELAY_MIN, Attempt::First);
        // The panic hook has logged the message.
        while catch_unwind(AssertUnwindSafe(|| work(attempt))).is_err() {
            attempt = Attempt::Restart;
            self.running.store(false, Relaxed);
            tracing::error!(task = self.subject, "panicked and restarts");
            if let Some(node) = &self.node {
                node.health.fail(self.subject.clone(), "it panicked and restarts; see the log");
            }
            std::thread::sleep(delay);
            delay = (delay * 2).min(RESTART_DELAY_MAX);
        }
    }
}
