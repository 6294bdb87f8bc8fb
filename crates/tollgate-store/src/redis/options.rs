//! How the store behaves.

use std::time::Duration;

/// How a [`RedisStore`](super::RedisStore) behaves. The defaults are those of the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What every key starts with.
    pub prefix: String,
    /// What keys are hashed with: the same on every node, and known to no client.
    pub secret: Vec<u8>,
    /// Whether the caller's clock counts instead of the server's.
    pub caller_time: bool,
    /// How long one call may take.
    pub deadline: Duration,
    /// Connections, each with one call under way.
    pub connections: usize,
    /// Requests that may wait at once.
    pub in_flight: usize,
    /// How long a key outlives its use.
    pub spare: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "tg".into(),
            secret: Vec::new(),
            caller_time: false,
            deadline: Duration::from_millis(25),
            connections: 2,
            in_flight: 10_000,
            spare: Duration::from_secs(1),
        }
    }
}

impl Options {
    /// The instant to send along, if any.
    pub(super) fn at(&self, now_us: u64) -> Option<u64> {
        self.caller_time.then_some(now_us)
    }
}
