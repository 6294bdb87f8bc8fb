//! Returns all leases when the process ends, and clears ledgers when an operator resets a key.

use super::Leases;
use crate::StoreError;
use crate::redis::RedisStore;
use crate::redis::batch::ScriptTables;
use crate::redis::client::Servers;
use crate::redis::key::grant_book_key;
use crate::redis::script::msgpack::array;
use crate::redis::script::{RESET_STATES, Script};
use futures_util::stream::{self, StreamExt};
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Resets a key's state and empties its ledger.
static CLEAR: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([crate::lease::CLEAR_LUA, RESET_STATES]));

/// Limit of calls in flight.
const RETURNS_IN_FLIGHT_MAX: usize = 64;
/// The pause before returning units that late replies brought.
const PAUSE: Duration = Duration::from_millis(2);

impl Leases {
    /// Returns all units and takes no more. Ends when the store has all of them; the caller sets a
    /// timeout.
    pub(crate) async fn release(&self, servers: &Arc<Servers>) {
        self.closed.store(true, Ordering::Relaxed);
        loop {
            let now_us = self.clock.now_us();
            let mut in_flight = false;
            let held = self.table.sweep(|entry, _| {
                entry.lease.return_all();
                in_flight |= entry.lease.has_request_in_flight();
                Some(entry.lease.should_return(now_us))
            });
            if held.is_empty() && !in_flight {
                return;
            }
            let renew = |address| self.renew(servers, address);
            stream::iter(held)
                .map(renew)
                .buffer_unordered(RETURNS_IN_FLIGHT_MAX)
                .collect::<()>()
                .await;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl RedisStore {
    /// Resets the states of a key, and empties its ledgers.
    pub(crate) async fn clear(
        &self,
        slot: u16,
        names: &[Vec<u8>],
        now_us: Option<u64>,
    ) -> Result<(), StoreError> {
        let clear = |name: &Vec<u8>| {
            let mut tables = ScriptTables::default();
            tables.key_index_of(grant_book_key(name));
            tables.key_index_of(name.clone());
            async move { self.servers.call(slot, &CLEAR, &tables, array(&[]), now_us).await.map(drop) }
        };
        futures_util::future::try_join_all(names.iter().map(clear)).await.map(drop)
    }
}
