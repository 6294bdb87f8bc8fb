//! How fast one address may try secrets: the token of the admin API, the password of Redis clients.

use std::net::{IpAddr, Ipv6Addr};
use tollgate_core::algorithm::{FixedWindow, Gcra};
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{Answers, Charge, MemoryStore, Mode, ParamsId, Request, Store, StoreCall};

/// Wrong secrets from one address, at once and per minute.
const TRIES_PER_MINUTE: u64 = 10;
const MINUTE_US: u64 = 60_000_000;
/// Enough for thousands of addresses; then those that tried least are forgotten.
const BYTES_MAX: u64 = 512 << 10;

/// Counts tries by address, and makes those wait that tried too often. An IPv6 address stands for
/// its network, which one machine has all of.
///
/// Each try is counted before the secret is compared, so concurrent tries count too. The right
/// secret then clears the count. A client that has to wait never learns whether its secret was
/// right. So an attacker at the operators' own address locks them out while the attack lasts.
#[derive(Debug)]
pub(super) struct LoginThrottle {
    store: MemoryStore,
    params: LimitParams,
}

impl LoginThrottle {
    pub(super) fn new() -> Self {
        Self::per_minute(TRIES_PER_MINUTE)
    }

    /// So many at once and per minute, by address.
    pub(super) fn per_minute(count: u64) -> Self {
        let gcra = Rate::try_new(count, MINUTE_US).and_then(|rate| Gcra::try_new(rate, None));
        // These numbers are in range; out of range, refuse.
        let nothing = FixedWindow::new(Rate::NOTHING);
        Self {
            store: MemoryStore::new(MemoryOptions::default().max_bytes(BYTES_MAX)),
            params: gcra.map_or(LimitParams::FixedWindow(nothing), LimitParams::Gcra),
        }
    }

    /// Counts a try; the time to wait instead, when there were too many.
    pub(super) fn count_try(&self, now_us: u64, peer: IpAddr) -> Option<u64> {
        self.decide(now_us, peer, Intent::Take)
    }

    /// The time to wait after too many tries, without counting one.
    pub(super) fn peek_wait_us(&self, now_us: u64, peer: IpAddr) -> Option<u64> {
        self.decide(now_us, peer, Intent::Peek)
    }

    fn decide(&self, now_us: u64, peer: IpAddr, intent: Intent) -> Option<u64> {
        let key = address_key(peer);
        let charge = Charge {
            limit: 0,
            key: &key,
            params: &self.params,
            params_id: ParamsId::default(),
            cost: 1,
            mode: Mode::Enforce,
            penalty: None,
        };
        let charges = [charge];
        let request = Request { charges: &charges, intent };
        let mut answers = Answers::default();
        self.store.begin(now_us, StoreCall::Decide(&[request]), &mut answers);
        match answers.get(0) {
            Some((false, [answer, ..])) => Some(answer.outcome.retry_after_us.unwrap_or(MINUTE_US)),
            _ => None,
        }
    }

    /// Forgets the tries of a client that sent the right secret.
    pub(super) fn clear(&self, peer: IpAddr) {
        self.store.begin(
            0,
            StoreCall::Reset { limit: 0, key: &address_key(peer) },
            &mut Answers::default(),
        );
    }
}

fn address_key(peer: IpAddr) -> [u8; 16] {
    let address: Ipv6Addr = match peer.to_canonical() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => (v6.to_bits() >> 64 << 64).into(),
    };
    address.octets()
}

#[cfg(test)]
mod tests;
