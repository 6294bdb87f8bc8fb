//! The Redis store on a real redis-server: Debian's package `redis-server`.

mod alike;
mod calendar;
mod cluster;
mod errands;
mod failures;
mod half_moved;
mod kept;
mod lasting;
mod lease;
mod leased;
mod others;
mod replica;
mod reservations;
mod revived;
mod sentinel;
mod sentinels;
mod server;
mod settled;
mod shop;
mod ways_in;

use server::Server;
use shop::long_deadline;
use tollgate_store::{RedisStore, conformance};

#[tokio::test]
async fn it_passes_the_suite_that_every_store_passes() {
    let server = Server::start().await;
    conformance::run(async || {
        server.run("FLUSHALL").await;
        RedisStore::open(&server.endpoint(), long_deadline()).unwrap()
    })
    .await;
}
