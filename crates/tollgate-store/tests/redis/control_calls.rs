//! Whatever is not a decision: it has a connection of its own, which depends on no caller,
//! and no say in whether decisions are made.

use crate::support::server::Server;
use crate::support::{NOW_US, a_day, long_deadline, take};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tokio::runtime::Builder;
use tollgate_store::redis::Endpoint;
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, ParamsId, RedisStore, Store, StoreCall,
    StoreErrorKind,
};

/// Connections to `port` that take so long to come about.
fn slow_to_connect(port: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let relay = move |near: TcpStream| {
        std::thread::sleep(delay);
        let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let (mut from, mut to) = (far, near);
        let _ = std::io::copy(&mut from, &mut to);
    };
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || relay(near));
        }
    });
    address.port()
}

#[tokio::test]
async fn a_connection_that_takes_longer_than_a_call_comes_about_all_the_same() {
    let server = Server::listen(&[]).await;
    let port = slow_to_connect(server.port, Duration::from_millis(300));
    let mut options = long_deadline();
    options.deadline = Duration::from_millis(100);
    // The server has to say that it has such a database before there is a connection.
    let endpoint = Endpoint::tcp("127.0.0.1", port).database(1);
    let store = RedisStore::open(&endpoint, options).unwrap();
    let mut made = false;
    for _ in 0..100 {
        made = made
            || store
                .call(0, StoreCall::Reset { limit: 1, key: b"key" }, &mut Answers::default())
                .await
                .is_ok();
    }
    assert!(
        made,
        "no call waited for long enough, and the connection was not to need one that does"
    );
}

#[tokio::test]
async fn a_connection_outlives_whoever_asked_for_it() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let brief = Builder::new_current_thread().enable_all().build().unwrap();
            brief.block_on(async {
                // The store's own runtime is kept busy by the thread that waits here, so this one
                // only asks and ends.
                let _ = tokio::time::timeout(
                    Duration::from_millis(50),
                    store.call(
                        0,
                        StoreCall::Reset { limit: 1, key: b"key" },
                        &mut Answers::default(),
                    ),
                )
                .await;
            });
        });
        asking.join().unwrap();
    });
    for _ in 0..2 {
        store
            .call(0, StoreCall::Reset { limit: 1, key: b"key" }, &mut Answers::default())
            .await
            .expect("the connection is the store's own");
    }
}

#[tokio::test]
async fn what_a_server_refuses_to_look_up_does_not_keep_it_from_deciding() {
    let server = Server::start().await;
    server.run("SET plans text").await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    for _ in 0..20 {
        let error = store.first_field("plans", &["somebody"]).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Rejected, "{error}");
    }
    assert!(!store.is_breaker_open());
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
}

#[tokio::test]
async fn a_block_lasts_as_long_by_the_servers_clock_as_it_was_meant_to_by_the_callers() {
    let server = Server::start().await;
    let mut options = long_deadline();
    options.caller_time = false;
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let params = a_day(5);
    let (limit, key, params_id, cost, mode) =
        (1, &b"key"[..], ParamsId::default(), 1, ChargeMode::Enforce);
    let charge = Charge { limit, key, params: &params, params_id, cost, mode, penalty: None };
    // The caller is years behind the server.
    let change = Change::Block { until_us: NOW_US + 3_600_000_000 };
    let mut answers = Answers::default();
    store
        .call(NOW_US, StoreCall::Adjust(&[Adjustment { charge, change }]), &mut answers)
        .await
        .unwrap();
    let left_us = answers.get(0).unwrap().1[0].outcome.retry_after_us;
    assert_eq!(left_us, Some(3_600_000_000));
    assert!(!take(&store, key, &params).await.unwrap());
}
