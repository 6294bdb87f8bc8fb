//! What became of each request.

use crate::observe::metrics::{Front, Metrics, Outcome};

/// A request that is counted once, whatever becomes of it. Dropped with nothing said about it, it
/// has been abandoned by whoever asked.
#[must_use = "dropping it counts the request"]
pub(super) struct OutcomeRecorder<'a>(Option<&'a Metrics>);

impl<'a> OutcomeRecorder<'a> {
    pub(super) fn new(metrics: &'a Metrics) -> Self {
        Self(Some(metrics))
    }

    /// It has been answered.
    pub(super) fn record(mut self, outcome: Outcome) {
        self.record_once(outcome);
    }

    fn record_once(&mut self, outcome: Outcome) {
        if let Some(metrics) = self.0.take() {
            metrics.count_request(Front::Gateway, outcome);
        }
    }
}

impl Drop for OutcomeRecorder<'_> {
    fn drop(&mut self) {
        self.record_once(match std::thread::panicking() {
            false => Outcome::Abandoned,
            true => Outcome::Error,
        });
    }
}
