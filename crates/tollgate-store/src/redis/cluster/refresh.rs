//! Reads which server has which slots, at the start, from time to time, and whenever a server
//! surprised.

use super::Cluster;
use super::slot_map::{SlotMap, SlotRange, ranges};
use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::redis::client::supervise::jitter;
use crate::{StoreError, StoreErrorKind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often the slots are read without cause.
const PERIOD: Duration = Duration::from_secs(30);
/// How often at most.
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
                // A map that was read once is still the best there is.
                let unknown = |known: &mut Option<Result<(), StoreError>>| {
                    let is_unknown = !matches!(known, Some(Ok(())));
                    if is_unknown {
                        *known = Some(Err(error));
                    }
                    is_unknown
                };
                cluster.map_read.send_if_modified(unknown);
                cluster.request_refresh();
            }
        }
        sleep(jitter(PAUSE)).await;
        // An error is the period's end.
        let _ = timeout(jitter(PERIOD), cluster.refresh.notified()).await;
    }
}

/// Asks one server after the other, those that work first. The error is what the last of them said.
async fn read_slots(cluster: &Cluster) -> Result<Vec<SlotRange>, StoreError> {
    let mut nodes = cluster.nodes();
    nodes.sort_by_key(|node| (node.breaker.is_open(), node.is_disconnected()));
    let known: Vec<ServerAddress> =
        nodes.iter().filter_map(|node| node.address().cloned()).collect();
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
    ranges(&answer, address).ok_or_else(|| Failure {
        error: StoreError::new(StoreErrorKind::Unreachable, "no server has any slots"),
        action: FailureAction::KeepConnection,
    })
}

/// Puts what was read in force. Servers that have no slots any more are left once the calls to them
/// have ended.
fn install_map(cluster: &Arc<Cluster>, ranges: &[SlotRange]) {
    let mut map = cluster.map.write().unwrap_or_else(PoisonError::into_inner);
    let mut new = SlotMap::default();
    for (slots, address) in ranges {
        let known = map.node_at(address).or_else(|| new.node_at(address)).cloned();
        let node = known.unwrap_or_else(|| cluster.start_node(address));
        new.assign(slots.clone(), &node);
    }
    let new = Arc::new(new);
    let old = std::mem::replace(&mut *map, Arc::clone(&new));
    drop(map);
    // Those that are found at the start are no others.
    if !old.nodes.is_empty() && !old.serves_same(&new) {
        cluster.shared.options.notify(|observer| observer.topology_changed());
    }
    let kept = |node: &&Arc<_>| !new.nodes.iter().any(|one| Arc::ptr_eq(one, node));
    for node in old.nodes.iter().filter(kept).cloned() {
        let cluster = Arc::clone(cluster);
        tokio::spawn(async move {
            for pending in node.queue.drain() {
                match pending.slot {
                    Some(slot) => cluster.requeue(slot, pending),
                    None => drop(pending),
                }
            }
            sleep(cluster.shared.options.deadline * 2).await;
            node.stop();
        });
    }
}
