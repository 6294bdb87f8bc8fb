//! Work that must not be missing: when it panics, traffic is kept away and it begins again.

#[cfg(test)]
mod tests;

use crate::Node;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How long work that broke off rests before it begins again, at first and at most: a panic that
/// comes back at once is not to keep a core busy.
const RESTART_DELAY_MIN: Duration = Duration::from_millis(100);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(1);

/// Whether work begins or begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    Restart,
}

/// Looks after the work of one thread.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// Under this name `/readyz` tells of it.
    subject: String,
    node: Option<Arc<Node>>,
    running: AtomicBool,
}

impl Supervisor {
    pub(crate) fn new(subject: String, node: Option<Arc<Node>>) -> Self {
        Self { subject, node, running: AtomicBool::new(true) }
    }

    /// What `/readyz` and the log call the work.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Says that the work is under way, so what broke it off is past.
    pub(crate) fn mark_running(&self) {
        if !self.running.swap(true, Relaxed) {
            tracing::info!(task = self.subject, "at work again");
            if let Some(node) = &self.node {
                node.health.clear(&self.subject);
            }
        }
    }

    /// Whether nobody has to wait until the work begins again.
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Relaxed)
    }

    /// Works until that ends by itself rather than by a panic. `work` is told whether it broke off
    /// before, and then finds out whether it is still wanted; what it keeps between two turns must
    /// make sense wherever it was left.
    pub(crate) fn run(&self, mut work: impl FnMut(Attempt)) {
        let (mut delay, mut attempt) = (RESTART_DELAY_MIN, Attempt::First);
        // Why it panicked has been said by whoever hears of every panic.
        while catch_unwind(AssertUnwindSafe(|| work(attempt))).is_err() {
            attempt = Attempt::Restart;
            self.running.store(false, Relaxed);
            tracing::error!(
                task = self.subject,
                "a part of the process broke off and begins again"
            );
            if let Some(node) = &self.node {
                node.health
                    .fail(self.subject.clone(), "it broke off and begins again; see the log");
            }
            std::thread::sleep(delay);
            delay = (delay * 2).min(RESTART_DELAY_MAX);
        }
    }
}
