//! Limiters on a real redis-server, used like in a program.

use std::sync::Arc;
use std::time::Duration;
use tollgate::limiter::InvalidLimiter;
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{RedisStore, StoreErrorKind};
use tollgate::{Decision, Limiter, Quota};
use tollgate_faults::redis::Redis;

#[path = "../../examples/redis.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod example;

/// A limiter with a deadline that a busy test machine can keep.
fn patient(server: &Redis, quota: Quota, name: &str) -> Limiter<RedisStore> {
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_secs(20);
    let store = RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap();
    Limiter::builder(quota).store(Arc::new(store)).name(name).build().unwrap()
}

#[tokio::test]
async fn the_example_limits() {
    let server = Redis::start();
    // The default deadline is short, and the machine may be busy.
    let mut answers = Vec::new();
    for user in 0..50 {
        if let Ok(said) = example::tries(&server.url(), &user.to_string()).await {
            answers = said;
            break;
        }
    }
    let left = |n| format!("welcome, {n} tries left");
    assert_eq!(answers, [left(2), left(1), left(0), "refused, 0 tries left".to_owned()]);
    let mut managed = false;
    for _ in 0..50 {
        managed |= example::manage(&server.url(), "alice").await.unwrap_or(false);
    }
    assert!(managed, "a key can be blocked");
}

#[tokio::test]
async fn every_verb_reaches_the_server_and_processes_share_it() {
    let server = Redis::start();
    let one = patient(&server, Quota::per_hour(10), "shared");
    let other = patient(&server, Quota::per_hour(10), "shared");
    let apart = patient(&server, Quota::per_hour(10), "apart");
    let key = ("tenant", 7);

    let reservation = one.reserve_async(key, 4).await.unwrap().admitted().unwrap();
    assert_eq!(other.peek_async(key).await.unwrap().remaining, 6);
    assert_eq!(apart.peek_async(key).await.unwrap().remaining, 10);
    reservation.cancel_async().await.unwrap();
    assert_eq!(other.peek_n_async(key, 11).await.unwrap().retry_after(), None);
    let reservation = other.reserve_async(key, 10).await.unwrap().admitted().unwrap();
    assert!(!one.check_async(key).await.unwrap().is_admitted());
    assert_eq!(reservation.settle_async(3).await.unwrap().remaining, 7);
    one.block_async(key, Duration::from_secs(60)).await.unwrap();
    assert!(other.peek_async(key).await.unwrap().blocked);
    one.unblock_async(key).await.unwrap();
    one.reset_async(key).await.unwrap();
    assert_eq!(other.peek_async(key).await.unwrap().remaining, 10);
    let waited = one.wait(key, Duration::from_secs(1)).await.unwrap();
    assert!(matches!(waited, Decision::Admitted(_)));
}

#[tokio::test]
async fn what_is_no_url_is_an_error_without_the_password() {
    let invalid = |url: &str| Limiter::builder(Quota::per_second(1)).redis(url).map(drop);
    for url in ["", "localhost", "http://:secret@host", "redis://:secret@/0", "redis://h/many"] {
        let Err(error @ InvalidLimiter::Redis(_)) = invalid(url) else { panic!("{url} is a URL") };
        let error = error.to_string();
        assert!(error.contains("redis://localhost:6379/0") && !error.contains("secret"), "{error}");
    }
    for url in ["redis://h", "rediss://u:p@h:1/2", "unix:///run/r.sock?db=3", "redis://[::1]:1"] {
        assert_eq!(invalid(url), Ok(()), "{url}");
    }
}

#[test]
fn without_a_runtime_redis_is_an_error() {
    let error = Limiter::builder(Quota::per_second(1)).redis("redis://127.0.0.1").map(drop);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("open it inside a tokio runtime"), "{error}");
}

#[test]
fn a_dropped_runtime_is_an_error_of_every_call() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let server = Redis::start();
    let first = runtime();
    let (limiter, slots) = first.block_on(async {
        let mut options = RedisOptions::default();
        options.deadline = Duration::from_secs(2);
        let store = RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap();
        let store = Arc::new(store);
        let rate = Limiter::builder(Quota::per_hour(9)).store(store.clone()).build().unwrap();
        assert!(rate.check_async("alice").await.is_ok());
        let slots = Limiter::builder(Quota::concurrency(1)).store(store).build().unwrap();
        (rate, slots.reserve_async("alice", 1).await.unwrap())
    });
    drop(first);
    // Without a runtime, the slot ends with its time to live.
    drop(slots);
    let second = runtime();
    second.block_on(async {
        for _ in 0..3 {
            let error = limiter.check_async("alice").await.unwrap_err();
            assert!(error.is_transient(), "{error}");
            assert_ne!(error.kind, StoreErrorKind::Protocol);
        }
    });
    drop(limiter);
}
