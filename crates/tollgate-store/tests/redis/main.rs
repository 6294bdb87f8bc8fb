//! The Redis store on a real redis-server: Debian's package `redis-server`.

mod reservations;
mod server;

use server::Server;
use std::time::Duration;
use tollgate_store::{RedisStore, conformance, redis::Options};

/// The suite chooses its own instants, and a busy machine may be slow.
fn options() -> Options {
    let mut options = Options::default();
    options.caller_time = true;
    options.deadline = Duration::from_secs(10);
    options.spare = Duration::from_secs(600);
    options
}

#[tokio::test]
async fn it_passes_the_suite_that_every_store_passes() {
    let server = Server::start().await;
    conformance::run(async || {
        let mut connection = server.client().get_multiplexed_async_connection().await.unwrap();
        redis::cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
        RedisStore::new(server.client(), options())
    })
    .await;
}
