//! How the store behaves.

use super::Observer;
use crate::Clock;
use crate::raw::clock::boot_us;
use std::sync::Arc;
use std::time::Duration;

/// How a [`RedisStore`](super::RedisStore) behaves. The defaults are those of the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisOptions {
    /// What every key starts with.
    pub prefix: String,
    /// What keys are hashed with: the same on every node, and known to no client. Where it is empty
    /// it is worked out of the password and the prefix, so that nodes with the same settings agree
    /// on it; then another password starts every count afresh.
    pub secret: Vec<u8>,
    /// Whether the caller's clock counts instead of the server's.
    pub caller_time: bool,
    /// How long one call may take. No caller ever waits longer, whatever the server does.
    pub deadline: Duration,
    /// Connections to each server, each with one call under way.
    pub connections: usize,
    /// Requests that may wait at once for one server.
    pub in_flight: usize,
    /// How long a key outlives its use.
    pub ttl_margin: Duration,
    /// Failures in a row after which a server is left alone: every call is answered with
    /// [`Busy`](crate::StoreErrorKind::Busy) at once, until a probe succeeds.
    pub breaker_errors: u32,
    /// How often a server that is left alone is probed: at the latest after this, at the earliest
    /// after half of it.
    pub breaker_probe: Duration,
    /// Whether replicas may answer peeks, with what they knew a moment ago.
    pub replica_reads: bool,
    /// Who is told when something changes.
    pub observer: Option<Arc<dyn Observer>>,
    /// What leases end by.
    pub boot_clock: BootClock,
}

/// A clock that counts while the machine is suspended and that nobody sets: the system's, or one
/// that a test moves. Only differences mean anything.
#[derive(Clone, Default)]
pub struct BootClock(Option<Arc<dyn Clock>>);

impl BootClock {
    /// A clock of the caller's. It must not begin at zero.
    pub fn custom(clock: Arc<dyn Clock>) -> Self {
        Self(Some(clock))
    }

    /// The present instant.
    #[inline]
    pub(super) fn now_us(&self) -> u64 {
        match &self.0 {
            None => boot_us(),
            Some(clock) => clock.now_us(),
        }
    }
}

impl std::fmt::Debug for BootClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BootClock").field(&self.0.is_some()).finish()
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "tg".into(),
            secret: Vec::new(),
            caller_time: false,
            deadline: Duration::from_millis(25),
            connections: 2,
            in_flight: 10_000,
            ttl_margin: Duration::from_secs(1),
            breaker_errors: 5,
            breaker_probe: Duration::from_millis(500),
            replica_reads: false,
            observer: None,
            boot_clock: BootClock::default(),
        }
    }
}

impl RedisOptions {
    /// The instant to send along, if any.
    pub(super) fn script_time(&self, now_us: u64) -> Option<u64> {
        self.caller_time.then_some(now_us)
    }

    /// How long a connection may take to come about, which is more than one round trip.
    /// How long a call may take for which no request waits.
    pub(super) fn background_timeout(&self) -> Duration {
        self.deadline.max(Duration::from_millis(250))
    }

    pub(super) fn connect_deadline(&self) -> Duration {
        (self.deadline * 10).max(Duration::from_millis(250))
    }

    /// Tells the observer, if there is one.
    pub(super) fn notify(&self, what: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.observer {
            what(&**observer);
        }
    }
}
