//! Threads with connections of their own.

use crate::support::server::Server;
use crate::support::{a_day, long_deadline, take, until_failed, until_healed};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tollgate_store::RedisStore;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A store whose own runtime is never driven, so that whatever is decided is decided over a
/// thread's own connection.
fn aloof(server: &Server, of: &Runtime) -> RedisStore {
    let _inside = of.enter();
    RedisStore::open(&server.endpoint(), long_deadline()).unwrap()
}

async fn until_connected(store: &RedisStore) {
    while store.status().disconnected > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn what_a_settled_thread_asks_needs_no_other_thread() {
    let idle = runtime();
    runtime().block_on(async {
        let server = Server::start().await;
        let store = aloof(&server, &idle);
        store.attach_thread(1);
        until_connected(&store).await;
        let three = a_day(3);
        let asked = (0..5).map(|_| take(&store, b"key", &three));
        let admitted = futures_util::future::join_all(asked).await;
        assert_eq!(admitted.into_iter().filter(|one| matches!(one, Ok(true))).count(), 3);
    });
}

#[test]
fn without_a_connection_of_its_own_a_thread_uses_the_common_ones() {
    let idle = runtime();
    runtime().block_on(async {
        let server = Server::start().await;
        let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
        // No task drives this runtime, so no connection ever comes up there.
        {
            let _inside = idle.enter();
            store.attach_thread(1);
        }
        until_healed(&store, b"key").await;
    });
}

#[test]
fn a_settled_thread_is_told_of_an_outage_and_heals() {
    runtime().block_on(async {
        let mut server = Server::start().await;
        let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
        store.attach_thread(2);
        until_healed(&store, b"key").await;
        server.kill();
        until_failed(&store, b"key").await;
        server.relaunch();
        until_healed(&store, b"key").await;
        assert_eq!(store.status().waiting, 0);
    });
}
