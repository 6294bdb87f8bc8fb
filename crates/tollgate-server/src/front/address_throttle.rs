//! Limits attempts to guess a secret, by address: the admin token, and the password of Redis
//! clients.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use tollgate::quota::Algorithm;
use tollgate::store::memory::MemoryOptions;
use tollgate::store::{Clock, ProcessClock};
use tollgate::{Limiter, MemoryStore, Quota};

/// Limit of wrong secrets from one address, at once and per minute.
const TRIES_PER_MINUTE: u32 = 10;
/// Memory limit: enough for thousands of addresses. When full, addresses with the fewest tries are
/// dropped.
const BYTES_MAX: u64 = 512 << 10;

/// Counts tries by address, and delays addresses with too many. An IPv6 address counts as its /64
/// network, because one machine can have all of it.
///
/// Each try is counted before the secret is compared, so concurrent tries count too. The right
/// secret then clears the count. A delayed client never learns whether its secret was right. So an
/// attacker at the operators' own address locks them out while the attack lasts.
#[derive(Debug)]
pub(super) struct AddressThrottle(Limiter);

impl AddressThrottle {
    pub(super) fn new() -> Self {
        Self::per_minute(TRIES_PER_MINUTE, ProcessClock)
    }

    /// Allows `count` tries per address, at once and per minute.
    pub(super) fn per_minute(count: u32, clock: impl Clock + 'static) -> Self {
        let quota = Quota::per_minute(count);
        let quota = quota.with_algorithm(Algorithm::Gcra).unwrap_or(quota);
        let store = Arc::new(MemoryStore::new(MemoryOptions::default().max_bytes(BYTES_MAX)));
        let limiter = Limiter::builder(quota).store(store).clock(clock).build();
        Self(limiter.unwrap_or_else(|_| Limiter::new(quota)))
    }

    /// Counts a try. Returns the time to wait, if there were too many.
    pub(super) fn count_try(&self, peer: IpAddr) -> Option<u64> {
        self.0.check(network(peer)).refusal().map(|refusal| wait_us(refusal.retry_after()))
    }

    /// The time to wait after too many tries; counts nothing.
    pub(super) fn peek_wait_us(&self, peer: IpAddr) -> Option<u64> {
        let standing = self.0.peek(network(peer));
        (!standing.admits).then(|| wait_us(standing.retry_after()))
    }

    /// Clears the tries of a client that sent the right secret.
    pub(super) fn clear(&self, peer: IpAddr) {
        self.0.reset(network(peer));
    }
}

/// The time to wait; a minute if waiting does not help.
fn wait_us(wait: Option<Duration>) -> u64 {
    wait.map_or(60_000_000, |wait| wait.as_micros() as u64)
}

fn network(peer: IpAddr) -> Ipv6Addr {
    match peer.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => (v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests;
