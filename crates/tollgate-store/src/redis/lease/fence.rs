//! Fences: prove that a direct decision read state that had lost nothing.
//!
//! A limit that fails closed accepts a decision of the store only if the primary's marker was there
//! after the decision. The connection task reads the marker after the batch, in the same write.
//! That costs Redis one `GET` per batch; limits without a fence pay nothing.

use super::Leases;
use super::takeover::marker_id;
use crate::lease::SeenMarker;
use crate::redis::client::Servers;
use crate::redis::client::connection::KeyRead;
use crate::redis::client::server::Server;
use crate::sync::{Lock, lock};
use std::sync::Arc;

/// The markers that servers showed right after deciding one request.
#[derive(Debug)]
pub(crate) struct Fence(Lock<Vec<MarkerSighting>>);

/// A server's marker right after a decision, and the number of the connection.
#[derive(Clone, Debug)]
struct MarkerSighting {
    server: Arc<Server>,
    connection: u64,
    marker: SeenMarker,
}

impl SeenMarker {
    /// The marker in the reply to `GET`, if the connection task sent one.
    pub(crate) fn of(read: Option<KeyRead>) -> Self {
        match read {
            None | Some(Err(_)) => Self::NotRead,
            Some(Ok(marker)) => {
                marker.and_then(|marker| marker_id(&marker)).map_or(Self::Missing, Self::Id)
            }
        }
    }
}

impl Fence {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Vec::new()))
    }

    /// Records the marker of `server` after a batch.
    pub(crate) fn record(&self, server: &Arc<Server>, connection: u64, marker: SeenMarker) {
        lock(&self.0).push(MarkerSighting { server: Arc::clone(server), connection, marker });
    }
}

impl Leases {
    /// The send time of a request, for [`is_decision_valid`](Self::is_decision_valid).
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Whether a decision requested at `sent_us` counts: no server involved had lost writes.
    pub(crate) async fn is_decision_valid(
        &self,
        servers: &Arc<Servers>,
        fence: &Fence,
        sent_us: u64,
        grace_us: u64,
    ) -> bool {
        let (arrived_us, sightings) = (self.clock.now_us(), lock(&fence.0).clone());
        for MarkerSighting { server, connection, marker } in &sightings {
            let is_valid = || {
                let times_us = (sent_us, arrived_us);
                self.monitors.is_decision_valid(server, times_us, *marker, *connection, grace_us)
            };
            let is_valid = self.check_until(servers, server, is_valid).await;
            if is_valid != Some(true) {
                self.monitors.distrust(server);
                return false;
            }
        }
        // A request that no server decided is not valid.
        !sightings.is_empty()
    }
}
