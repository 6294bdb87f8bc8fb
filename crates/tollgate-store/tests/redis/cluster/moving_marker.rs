//! The slot of a marker moves to another primary, under fire.

use super::migrating_slot::Move;
use super::{Cluster, until_says};
use crate::leased::client::options;
use crate::leased::spread::Spread;
use crate::support::server::Server;
use futures_util::future::join;
use std::time::Duration;
use tollgate_store::GracePolicy;

/// Rounds that last longer than a process trusts a primary without a reading.
async fn rounds(spread: &mut Spread) {
    for _ in 0..80 {
        spread.round(1).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn keys(server: &Server) -> Vec<String> {
    let mut connection = server.connect().await;
    redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap()
}

/// The primary of the keys, which share a slot.
async fn busy_primary(cluster: &Cluster) -> &Server {
    for server in &cluster.servers {
        if keys(server).await.iter().any(|key| !key.ends_with(":m")) {
            return server;
        }
    }
    panic!("there are no keys");
}

/// The first marker of a primary: that with the lowest number.
async fn first_marker(server: &Server) -> String {
    let number = |key: &String| key.split(['{', '}']).nth(1)?.parse::<u32>().ok();
    let keys = keys(server).await.into_iter();
    keys.filter(|key| key.ends_with(":m")).min_by_key(number).expect("a primary has a marker")
}

/// Nothing is lost, so every request is decided, and no grace period begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_slot_of_a_marker_moves() {
    let cluster = Cluster::start(3, 0).await;
    for (limit, policy) in [(1, GracePolicy::Decide), (2, GracePolicy::Refuse)] {
        let nodes = (0..2).map(|_| cluster.open(options())).collect();
        let mut spread = Spread::with_policy(limit, nodes, policy);
        spread.round(60).await;
        let before = (spread.grace_periods(), spread.failed);
        let from = busy_primary(&cluster).await;
        for (is_half_way, error) in [(false, "errorstat_MOVED"), (true, "errorstat_ASK")] {
            let marker = first_marker(from).await;
            from.run("CONFIG RESETSTAT").await;
            let moving = Move::begin(&cluster, &marker).await;
            moving.carry(&marker).await;
            if !is_half_way {
                moving.end(&cluster).await;
            }
            join(until_says(from, "INFO errorstats", error), rounds(&mut spread)).await;
            if is_half_way {
                moving.end(&cluster).await;
            }
        }
        rounds(&mut spread).await;
        assert_eq!((spread.grace_periods(), spread.failed), before, "{policy:?}");
        spread.check_limit(false);
    }
    a_wipe_is_noticed_although_the_marker_moves(&cluster).await;
}

async fn a_wipe_is_noticed_although_the_marker_moves(cluster: &Cluster) {
    let nodes = (0..2).map(|_| cluster.open(options())).collect();
    let mut spread = Spread::with_policy(3, nodes, GracePolicy::Refuse);
    spread.round(60).await;
    let (before, _) = spread.grace_periods();
    let from = busy_primary(cluster).await;
    let moving = Move::begin(cluster, &first_marker(from).await).await;
    from.run("FLUSHALL").await;
    moving.end(cluster).await;
    rounds(&mut spread).await;
    assert!(spread.grace_periods().0 > before, "the server lost its keys");
    spread.check_limit(true);
}
