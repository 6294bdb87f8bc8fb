//! Pauses of unequal length, so that many processes that lost the same server do not return to it
//! together.

use ahash::RandomState;
use std::time::Duration;

/// Somewhere between half of `most` and all of it.
pub(super) fn jitter(most: Duration) -> Duration {
    let dice = (RandomState::new().hash_one(0) % 1_024) as u32;
    most / 2 + most / 2 * dice / 1_024
}

/// Ever longer pauses between attempts.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    most: Duration,
}

const FIRST: Duration = Duration::from_millis(5);

impl Backoff {
    pub(super) const fn new(most: Duration) -> Self {
        Self { next: FIRST, most }
    }

    /// After a success the next failure counts as a first one.
    pub(super) const fn reset(&mut self) {
        self.next = FIRST;
    }

    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(jitter(self.next)).await;
        self.next = (self.next * 2).min(self.most);
    }
}
