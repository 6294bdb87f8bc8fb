//! The Redis store on a real redis-server: Debian's package `redis-server`.

mod calendar;
mod cluster;
mod connecting;
mod control_calls;
mod differential;
mod expiry;
mod failures;
mod lease_script;
mod leased;
mod node_report;
mod other_data;
mod other_servers;
mod replica;
mod reservations;
mod sentinel;
mod shared_table;
mod stored_values;
mod support;
mod task_restart;
mod thread_connections;
mod unread_replies;

use support::long_deadline;
use support::server::Server;
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
