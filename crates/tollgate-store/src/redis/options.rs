//! Options of the Redis store.

use super::Observer;
use crate::Clock;
use crate::raw::clock::boot_us;
use std::sync::Arc;
use std::time::Duration;

/// Options of a [`RedisStore`](super::RedisStore). The defaults are those of `tollgate.yaml`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The prefix of every key.
    pub prefix: String,
    /// The secret that hashes keys: equal on every node, unknown to clients. If empty, it is
    /// derived from password and prefix, so that nodes with the same settings agree. Then a new
    /// password resets every count.
    pub secret: Vec<u8>,
    /// Whether to decide by the caller's clock instead of the server's.
    pub caller_time: bool,
    /// The deadline of one call. No caller ever waits longer.
    pub deadline: Duration,
    /// Connections to each server.
    pub connections: usize,
    /// Limit of requests that wait for one server.
    pub in_flight: usize,
    /// The time that a key outlives its use.
    pub ttl_margin: Duration,
    /// Failures in a row that open a server's circuit breaker. Then every call fails at once with
    /// [`BreakerOpen`](crate::StoreErrorKind::BreakerOpen), until a probe succeeds.
    pub breaker_errors: u32,
    /// The longest interval between probes of a server with an open breaker; the shortest is half
    /// of it.
    pub breaker_probe: Duration,
    /// Whether replicas may answer peeks, which may then lag behind.
    pub replica_reads: bool,
    /// Receives changes of state.
    pub observer: Option<Arc<dyn Observer>>,
    /// The clock that leases expire by.
    pub boot_clock: BootClock,
}

/// The boot-time clock, which also counts while the machine is suspended, or a test's clock. Only
/// differences are meaningful.
#[derive(Clone, Default)]
pub struct BootClock(Option<Arc<dyn Clock>>);

impl BootClock {
    /// Uses another clock, for tests. It must not start at zero.
    pub fn custom(clock: Arc<dyn Clock>) -> Self {
        Self(Some(clock))
    }

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
    /// The instant to send with a call, if the caller's clock is used.
    pub(super) fn script_time(&self, now_us: u64) -> Option<u64> {
        self.caller_time.then_some(now_us)
    }

    /// The deadline of a call that no request waits for.
    pub(super) fn background_timeout(&self) -> Duration {
        self.deadline.max(Duration::from_millis(250))
    }

    /// The deadline of a new connection, which takes several round trips.
    pub(super) fn connect_deadline(&self) -> Duration {
        (self.deadline * 10).max(Duration::from_millis(250))
    }

    pub(super) fn notify(&self, call: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.observer {
            call(&**observer);
        }
    }
}
