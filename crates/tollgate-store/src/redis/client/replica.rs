//! Peeks at replicas, if the policy allows answers that lag behind.
//!
//! A server lists its replicas in its answer to `ROLE`, so one code serves a single server,
//! Sentinel and Cluster. Finding a replica never delays a peek: until one is found, and for a while
//! after one failed, the primary answers. `EVALSHA_RO` runs the scripts, so a server refuses
//! writes.

use super::connection::Link;
use super::endpoint::ServerAddress;
use super::server::Server;
use crate::ProcessClock;
use crate::redis::batch::queue::{PendingBatch, RequestRows};
use crate::redis::batch::rows::replay_rows;
use crate::sync::lock_mutex;
use redis::Value;
use std::sync::{Arc, Mutex};
use tokio::time::timeout;

/// The interval of replica checks, and the delay of a search after a failure.
const LOOK_EVERY_US: u64 = 1_000_000;

/// The replica of one server that answers peeks.
#[derive(Debug, Default)]
pub(crate) struct ReplicaLink(Mutex<ReplicaState>);

#[derive(Debug, Default)]
struct ReplicaState {
    link: Option<Arc<Link>>,
    /// The time of the last search or check.
    looked_us: u64,
    is_looking: bool,
}

impl ReplicaLink {
    /// Drops a failed replica; the next search follows after a while.
    fn forget(&self, link: &Arc<Link>) {
        let mut found = lock_mutex(&self.0);
        if found.link.take_if(|own| Arc::ptr_eq(own, link)).is_some() {
            found.looked_us = ProcessClock.now_us();
        }
    }
}

impl Server {
    /// Answers the peek of one request; `None` if no replica can.
    pub(crate) async fn peek_at_replica(
        self: &Arc<Self>,
        pending: &PendingBatch,
    ) -> Option<RequestRows> {
        let link = self.replica_link()?;
        let call = self.call_for(pending).read_only();
        // Leaves time for the primary to answer instead.
        let within = self.shared.options.deadline / 2;
        let decided = match timeout(within, link.call(&call)).await {
            Ok(Ok(value)) => pending.read_reply(&call, value),
            Ok(Err(_)) | Err(_) => {
                self.replica.forget(&link);
                return None;
            }
        };
        let mut rows = None;
        let answered = replay_rows(&pending.batch, &decided.ok()?, |admitted, answers| {
            rows = Some((admitted, answers.iter().copied().collect()));
        });
        // The primary answers for keys with other data.
        rows.filter(|_| matches!(answered, Ok(true)))
    }

    /// The connection to a replica, if there is one. Starts a search or check in the background.
    fn replica_link(self: &Arc<Self>) -> Option<Arc<Link>> {
        let mut found = lock_mutex(&self.replica.0);
        let is_due = ProcessClock.now_us().saturating_sub(found.looked_us) >= LOOK_EVERY_US;
        if is_due && !found.is_looking {
            found.is_looking = true;
            self.shared.runtime.spawn(look(Arc::clone(self)));
        }
        found.link.clone().filter(|link| !link.is_closed())
    }

    /// The replicas listed by this server.
    async fn replicas(self: &Arc<Self>) -> Vec<ServerAddress> {
        match self.command(&redis::cmd("ROLE"), false).await {
            Ok(role) => listed(&role),
            Err(_) => Vec::new(),
        }
    }

    async fn find_replica(self: &Arc<Self>) -> Option<Arc<Link>> {
        let mut addresses = self.replicas().await;
        // Processes start with different replicas, so that they share the load.
        let first = ProcessClock.now_us() as usize % addresses.len().max(1);
        addresses.rotate_left(first);
        for address in &addresses {
            let Ok(link) = self.shared.dialer.dial(address).await else { continue };
            let is_allowed = self.cluster().is_none()
                || link.command(&redis::cmd("READONLY"), false).await.is_ok();
            if is_allowed && follows(&link).await {
                return Some(Arc::new(link));
            }
        }
        None
    }
}

/// Checks the current replica, or finds another one.
async fn look(server: Arc<Server>) {
    let known = lock_mutex(&server.replica.0).link.clone().filter(|link| !link.is_closed());
    let link = match known {
        Some(link) if follows(&link).await => Some(link),
        _ => server.find_replica().await,
    };
    let looked_us = ProcessClock.now_us();
    *lock_mutex(&server.replica.0) = ReplicaState { link, looked_us, is_looking: false };
}

/// Whether the server is a replica that is connected to its primary.
async fn follows(link: &Link) -> bool {
    let Ok(Value::Array(parts)) = link.command(&redis::cmd("ROLE"), false).await else {
        return false;
    };
    text(parts.first()) == Some("slave") && text(parts.get(3)) == Some("connected")
}

/// The replicas in a primary's answer to `ROLE`.
fn listed(role: &Value) -> Vec<ServerAddress> {
    let Value::Array(parts) = role else { return Vec::new() };
    let (Some("master"), Some(Value::Array(replicas))) = (text(parts.first()), parts.get(2)) else {
        return Vec::new();
    };
    let address = |replica: &Value| {
        let Value::Array(replica) = replica else { return None };
        let port = text(replica.get(1))?.parse().ok()?;
        Some(ServerAddress::Tcp(text(replica.first())?.to_owned(), port))
    };
    replicas.iter().filter_map(address).collect()
}

fn text(value: Option<&Value>) -> Option<&str> {
    match value? {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
