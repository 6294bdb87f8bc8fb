//! What became of each request.

use crate::metrics::{Front, Metrics, Outcome};

/// A request that is counted once, whatever becomes of it. Dropped with nothing said about it, it has been abandoned by whoever asked.
#[must_use = "dropping it counts the request"]
pub(super) struct Count<'a>(Option<&'a Metrics>);

impl<'a> Count<'a> {
    pub(super) fn new(metrics: &'a Metrics) -> Self {
        Self(Some(metrics))
    }

    /// It has been answered.
    pub(super) fn end(mut self, outcome: Outcome) {
        self.say(outcome);
    }

    fn say(&mut self, outcome: Outcome) {
        if let Some(metrics) = self.0.take() {
            metrics.requests(Front::Gateway, outcome);
        }
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.say(match std::thread::panicking() {
            false => Outcome::Abandoned,
            true => Outcome::Error,
        });
    }
}
