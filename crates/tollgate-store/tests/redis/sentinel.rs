//! Through a sentinel, from one primary to the next.

use crate::leased::spread::Spread;
use crate::server::Server;
use crate::shop::{a_day, long_deadline, take, until_healed};
use std::time::Duration;
use tollgate_store::RedisStore;
use tollgate_store::redis::Endpoint;

#[tokio::test]
async fn it_follows_the_primary() {
    let mut first = Server::listen(&[]).await;
    let of_first = ["--replicaof", &format!("127.0.0.1 {}", first.port)];
    let second = Server::listen(&of_first).await;
    loop {
        if format!("{:?}", second.run("INFO replication").await).contains("link_status:up") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let sentinel = Server::listen(&["--sentinel"]).await;
    sentinel.run(&format!("SENTINEL MONITOR store 127.0.0.1 {} 1", first.port)).await;
    sentinel.run("SENTINEL SET store down-after-milliseconds 500").await;
    sentinel.run("SENTINEL SET store failover-timeout 2000").await;
    let mut options = long_deadline();
    options.deadline = Duration::from_millis(500);
    options.breaker_probe = Duration::from_millis(100);
    // The first sentinel does not exist, which is no reason to give up.
    let nodes = [("127.0.0.1".into(), 1), ("127.0.0.1".into(), sentinel.port)];
    let endpoint = Endpoint::sentinel("store", nodes);
    let store = RedisStore::open(&endpoint, options.clone()).unwrap();
    until_healed(&store, b"key").await;
    assert!(take(&store, b"one", &a_day(1)).await.unwrap());
    let mut reading = options.clone();
    reading.replica_reads = true;
    let reading = RedisStore::open(&endpoint, reading).unwrap();
    until_healed(&reading, b"key").await;
    crate::replica::until_read(&reading, &[&second]).await;
    let mut leasing = crate::leased::desk::options();
    (leasing.deadline, leasing.breaker_probe) = (options.deadline, options.breaker_probe);
    let open = |_| RedisStore::open(&endpoint, leasing.clone()).unwrap();
    let mut spread = Spread::new((0..2).map(open).collect());
    spread.round(200).await;
    // The sentinel has to have heard of the replica.
    loop {
        if format!("{:?}", sentinel.run("SENTINEL REPLICAS store").await).contains("slave-priority")
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.kill();
    until_healed(&store, b"key").await;
    let role = format!("{:?}", second.run("ROLE").await);
    assert!(role.contains("master"), "{role}");
    assert!(!take(&store, b"one", &a_day(1)).await.unwrap(), "the count went along");
    // What was the replica is the primary, which has none.
    until_healed(&reading, b"key").await;
    assert!(!crate::replica::peek(&reading, &[b"one"], &a_day(1), None).await.0);
    spread.round(300).await;
    spread.check(true);
}
