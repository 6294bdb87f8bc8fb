//! Reads the slot map: at the start, every 30 s, and after redirects and failures.

use super::Cluster;
use super::slot_map::{SlotMap, SlotRange, ranges};
use crate::redis::batch::queue::BatchScope;
use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::redis::client::supervise::jitter;
use crate::{StoreError, StoreErrorKind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The interval of regular reads of the map.
const PERIOD: Duration = Duration::from_secs(30);
/// The shortest pause between two reads.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn run(cluster: Arc<Cluster>) {
    loop {
        match read_slots(&cluster).await {
            Ok(ranges) => {
                install_map(&cluster, &ranges);
                cluster.map_read.send_replace(Some(Ok(())));
            }
            Err(error) => {
                let options = &cluster.shared.options;
                options.notify(|observer| observer.attempt_failed("cluster", &error));
                // An old map is better than no map.
                cluster.map_read.send_if_modified(|read| {
                    let is_first = !matches!(read, Some(Ok(())));
                    if is_first {
                        *read = Some(Err(error));
                    }
                    is_first
                });
                cluster.request_refresh();
            }
        }
        sleep(jitter(PAUSE)).await;
        // An error means that the period is over.
        let _ = timeout(jitter(PERIOD), cluster.refresh.notified()).await;
    }
}

/// Asks one server after the other, healthy ones first. Returns the last error.
async fn read_slots(cluster: &Cluster) -> Result<Vec<SlotRange>, StoreError> {
    let mut servers = cluster.servers();
    servers.sort_by_key(|server| (server.breaker.is_open(), server.is_disconnected()));
    let known: Vec<ServerAddress> =
        servers.iter().filter_map(|server| server.address().cloned()).collect();
    let seeds = cluster.seeds.iter().filter(|seed| !known.contains(seed));
    let mut error = StoreError::new(StoreErrorKind::Unreachable, "");
    for address in known.iter().chain(seeds) {
        match slots(cluster, address).await {
            Ok(ranges) => return Ok(ranges),
            Err(failure) => error = failure.error,
        }
    }
    Err(error)
}

async fn slots(cluster: &Cluster, address: &ServerAddress) -> Result<Vec<SlotRange>, Failure> {
    let link = cluster.shared.dialer.dial(address).await?;
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    let answer = link.command(&command, false).await?;
    let text = "no server has any slots";
    ranges(&answer, address).ok_or_else(|| {
        Failure::new(StoreErrorKind::Unreachable, FailureAction::KeepConnection, text)
    })
}

/// Installs a new map. Servers without slots stop once their calls have ended.
fn install_map(cluster: &Arc<Cluster>, ranges: &[SlotRange]) {
    let mut map = cluster.map.write().unwrap_or_else(PoisonError::into_inner);
    let mut new = SlotMap::default();
    for (slots, address) in ranges {
        let known = map.server_at(address).or_else(|| new.server_at(address)).cloned();
        let server = known.unwrap_or_else(|| cluster.start_server(address));
        new.assign(slots.clone(), &server);
    }
    let new = Arc::new(new);
    let old = std::mem::replace(&mut *map, Arc::clone(&new));
    drop(map);
    // Reading the first map is no change.
    if !old.servers.is_empty() && !old.serves_same(&new) {
        cluster.shared.options.notify(|observer| observer.topology_changed());
    }
    let kept = |server: &&Arc<_>| !new.servers.iter().any(|one| Arc::ptr_eq(one, server));
    for server in old.servers.iter().filter(kept).cloned() {
        let cluster = Arc::clone(cluster);
        tokio::spawn(async move {
            for pending in server.queue.drain() {
                match pending.scope {
                    BatchScope::Slot(slot) => cluster.requeue(slot, pending),
                    _ => cluster.ask_by_slot(pending, &FailureAction::NotLocal),
                }
            }
            sleep(cluster.shared.options.deadline * 2).await;
            server.stop();
        });
    }
}
