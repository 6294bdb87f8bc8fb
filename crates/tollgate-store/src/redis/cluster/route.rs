//! Routes: the call that decides each charge, and the rules for repeating calls.
//!
//! A primary that knows `allow-cross-slot-keys` (Redis 7.0, Valkey) decides charges of all its
//! slots in one call. The call declares no key: its keys are arguments, and this module, not
//! Redis, routes it to the primary. Any other primary gets a call for each slot.
//!
//! **Invariant: no request is counted twice or half, under resharding, failover and mixed
//! versions.** It follows from five rules.
//!
//! 1. A script call is atomic: slots neither move nor change state while it runs.
//! 2. A script reads every key before its first write. A key that the server does not have fails
//!    its read: its slot is at another server, or migrates and the key is gone, or is imported.
//!    Redis 7.0.15 then answers `ERR`, not `MOVED` or `ASK`, and keeps writes that came before. So
//!    the error proves that nothing was written. A key that was read can be written.
//! 3. A batch is asked again only after an answer that proves that the server did nothing: that
//!    error; a refused shebang line (Redis 6.2); `READONLY`, which Redis answers before it runs a
//!    script with a shebang line. A timeout or a lost connection never repeats a call.
//! 4. A batch over several slots is asked again slot by slot, with declared keys, and never over
//!    several slots. Then `MOVED` and `ASK` say where each slot is.
//! 5. A caller's reply moves with its requests, so each request has one place where it waits. A
//!    request over several calls is admitted if all that answer admit; otherwise each gives back
//!    what it took. The caller decides for the calls that fail, and may give back the rest.

use super::slot_map::{SlotMap, slot_of};
use super::{Cluster, TRY_AGAIN};
use crate::StoreError;
use crate::raw::clock::instant_after;
use crate::redis::batch::queue::{BatchScope, PendingBatch, ReplyReceiver};
use crate::redis::batch::{DecideRequest, DecideRequests};
use crate::redis::client::failure::FailureAction;
use crate::redis::client::server::Server;
use crate::redis::client::supervise::jitter;
use smallvec::SmallVec;
use std::sync::Arc;
use tokio::time::sleep;

/// The scope of the calls that decide a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSpan {
    /// One call per primary, if the primary supports it.
    Primary,
    /// One call per slot.
    Slot,
}

/// The call that decides a part of a request.
#[derive(Clone, Debug)]
pub(super) enum Route {
    Slot(u16),
    Primary(Arc<Server>),
}

/// The indexes of a request's charges, by route.
pub(super) type ChargesByRoute = Vec<(Route, Vec<usize>)>;

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Slot(one), Self::Slot(other)) => one == other,
            (Self::Primary(one), Self::Primary(other)) => Arc::ptr_eq(one, other),
            (Self::Slot(_), Self::Primary(_)) | (Self::Primary(_), Self::Slot(_)) => false,
        }
    }
}

/// The routes of all slots at one instant, so that requests on one slot share a route.
#[derive(Debug)]
pub(super) struct RouteTable {
    map: Arc<SlotMap>,
    /// For each server, whether its calls may use several slots.
    spans_slots: SmallVec<[bool; 8]>,
}

impl RouteTable {
    fn route(&self, slot: u16) -> Route {
        let spans = |server: &usize| self.spans_slots[*server] && !self.map.is_migrating(slot);
        match self.map.server_index(slot).filter(spans) {
            Some(server) => Route::Primary(Arc::clone(&self.map.servers[server])),
            None => Route::Slot(slot),
        }
    }

    /// The parts of a request, ordered by the first use of each route.
    pub(super) fn parts(&self, request: &DecideRequest) -> ChargesByRoute {
        let mut parts = ChargesByRoute::new();
        for (index, charge) in request.charges.iter().enumerate() {
            let route = self.route(slot_of(&charge.name));
            match parts.iter_mut().find(|part| part.0 == route) {
                Some(part) => part.1.push(index),
                None => parts.push((route, vec![index])),
            }
        }
        parts
    }
}

impl Cluster {
    pub(super) fn routes(&self, span: CallSpan) -> RouteTable {
        let map = self.map();
        let spans = |server: &Arc<Server>| span == CallSpan::Primary && server.spans_slots();
        RouteTable { spans_slots: map.servers.iter().map(spans).collect(), map }
    }

    /// Queues requests at the server of a route.
    pub(super) fn push(
        &self,
        route: &Route,
        now_us: Option<u64>,
        requests: DecideRequests,
    ) -> Result<ReplyReceiver, StoreError> {
        match route {
            Route::Slot(slot) => {
                self.server(*slot)?.push(BatchScope::Slot(*slot), now_us, requests)
            }
            Route::Primary(server) => server.push(BatchScope::Primary, now_us, requests),
        }
    }

    /// Repeats a batch over several slots, slot by slot.
    pub(super) fn ask_by_slot(self: &Arc<Self>, pending: PendingBatch, action: &FailureAction) {
        let now_us = pending.now_us;
        let has_moved = *action == FailureAction::NotLocal;
        if !has_moved {
            self.request_refresh();
        }
        for (requests, mut reply) in pending.into_callers() {
            let cluster = Arc::clone(self);
            tokio::spawn(async move {
                let asked = async {
                    if !has_moved {
                        sleep(jitter(TRY_AGAIN)).await;
                    }
                    let deadline = instant_after(cluster.shared.options.deadline);
                    cluster.decide_by(CallSpan::Slot, now_us, deadline, requests).await
                };
                // If the caller is gone, nothing may be charged.
                tokio::select! {
                    decided = asked => drop(reply.send(decided)),
                    () = reply.closed() => {}
                }
            });
        }
    }
}
