//! Every way in which a server can fail to decide, and that the store heals from it by itself.

use crate::support::server::Server;
use crate::support::{
    NOW_US, RecordingObserver, a_day, long_deadline, short_deadline, take, until_failed,
    until_healed, until_open,
};
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{LimitParams, Rate};
use tollgate_store::{Answers, RedisStore, Store, StoreCall, StoreError, StoreErrorKind};

/// What breaks a server, what its callers are then told, and what mends it.
async fn breaks_and_heals(server: &Server, breaks: &str, says: &str, mends: &str) {
    let notes = RecordingObserver::default();
    let mut options = short_deadline();
    // Each reply is to be seen, and on a busy machine a reply may take long.
    options.deadline = Duration::from_secs(20);
    options.observer = Some(Arc::new(notes.clone()));
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    until_healed(&store, b"key").await;
    server.run(breaks).await;
    let error = until_failed(&store, b"key").await;
    assert!(error.to_string().contains(says), "{error}");
    until_open(&store, b"key").await;
    let error = take(&store, b"key", &a_day(1)).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::BreakerOpen, "an open breaker answers at once");
    assert_eq!(notes.count("opened"), 1, "{:?}", notes.all());
    server.run(mends).await;
    until_healed(&store, b"key").await;
    assert!(!store.is_breaker_open());
    assert_eq!((notes.count("opened"), notes.count("closed")), (1, 1), "{:?}", notes.all());
}

#[tokio::test]
async fn out_of_memory() {
    let server = Server::start().await;
    let (breaks, mends) = ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0");
    breaks_and_heals(&server, breaks, "OOM", mends).await;
}

#[tokio::test]
async fn a_replica_takes_no_writes() {
    let server = Server::start().await;
    let breaks = "REPLICAOF 127.0.0.1 1";
    breaks_and_heals(&server, breaks, "READONLY", "REPLICAOF NO ONE").await;
}

#[tokio::test]
async fn no_permission_for_one_sort_of_decision() {
    let server = Server::start().await;
    let notes = RecordingObserver::default();
    let mut options = long_deadline();
    options.observer = Some(Arc::new(notes.clone()));
    // By the server's clock what follows on a decision of a pace is `INCRBY`, but for one in two
    // seconds.
    options.caller_time = false;
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let pace = LimitParams::Gcra(
        Gcra::try_new(Rate::try_new(1_000_000, 1_000_000).unwrap(), None).unwrap(),
    );
    let told = || (notes.count("refuses"), notes.count("accepts again"), notes.count("opened"));
    server.run("ACL SETUSER default -incrby").await;
    let mut refused = 0;
    while refused < 20 {
        if let Err(error) = take(&store, b"paced", &pace).await {
            assert!(error.to_string().contains("NOPERM"), "{error}");
            refused += 1;
        }
        assert!(take(&store, b"key", &a_day(1_000_000)).await.unwrap(), "others are decided");
    }
    assert_eq!(told(), (1, 0, 0), "{:?}", notes.all());
    server.run("ACL SETUSER default +incrby").await;
    for _ in 0..200 {
        take(&store, b"paced", &pace).await.unwrap();
    }
    assert_eq!(told(), (1, 1, 0), "{:?}", notes.all());
}

#[tokio::test]
async fn a_key_that_holds_something_else_is_its_own_trouble() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    take(&store, b"key", &a_day(1_000)).await.unwrap();
    let redis::Value::Array(names) = server.run("KEYS *").await else { panic!("no keys") };
    let redis::Value::BulkString(name) = &names[0] else { panic!("no name") };
    let mut spoil = redis::cmd("SET");
    spoil.arg(name).arg("no count at all").exec_async(&mut server.connect().await).await.unwrap();
    for n in 0..20 {
        take(&store, b"key", &a_day(1_000)).await.unwrap_err();
        let other = format!("other {n}");
        assert!(take(&store, other.as_bytes(), &a_day(1)).await.unwrap(), "{n}");
    }
    assert!(!store.is_breaker_open());
}

#[tokio::test]
async fn a_cluster_without_its_slots() {
    let server = Server::start_with(&["--cluster-enabled", "yes"]).await;
    server.run("CLUSTER ADDSLOTSRANGE 0 16383").await;
    while !format!("{:?}", server.run("CLUSTER INFO").await).contains("cluster_state:ok") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let breaks = "CLUSTER DELSLOTSRANGE 0 16383";
    let mends = "CLUSTER ADDSLOTSRANGE 0 16383";
    breaks_and_heals(&server, breaks, "CLUSTERDOWN", mends).await;
}

#[tokio::test]
async fn a_password_that_is_not_accepted_yet() {
    let server = Server::start_with(&["--requirepass", "other"]).await;
    for (password, says) in [(None, "NOAUTH"), (Some("marker-pw".to_owned()), "credentials")] {
        let mut other = redis::cmd("AUTH");
        other.arg("other");
        let endpoint = server.endpoint().credentials(None, password);
        let mut options = long_deadline();
        options.breaker_probe = Duration::from_millis(50);
        let store = RedisStore::open(&endpoint, options).unwrap();
        let error = until_failed(&store, b"key").await;
        assert!(error.to_string().contains(says), "{error}");
        assert!(!error.is_transient() && !error.to_string().contains("marker"), "{error}");
        until_open(&store, b"key").await;
        let mut admin = server.connect().await;
        other.exec_async(&mut admin).await.unwrap();
        let mut allow = redis::cmd("ACL");
        allow.arg("SETUSER").arg("default").arg(if says == "NOAUTH" {
            "nopass"
        } else {
            ">marker-pw"
        });
        allow.exec_async(&mut admin).await.unwrap();
        until_healed(&store, b"key").await;
        let mut deny = redis::cmd("ACL");
        deny.arg("SETUSER").arg("default").arg("resetpass").arg(">other");
        deny.exec_async(&mut admin).await.unwrap();
    }
}

#[tokio::test]
async fn a_script_that_never_ends() {
    let server = Server::start_with(&["--lua-time-limit", "1"]).await;
    let mut options = short_deadline();
    options.deadline = Duration::from_secs(20);
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    until_healed(&store, b"key").await;
    let mut hog = server.connect().await;
    let hogging = tokio::spawn(async move {
        let _: redis::RedisResult<()> =
            redis::cmd("EVAL").arg("while true do end").arg(0).query_async(&mut hog).await;
    });
    let error = until_failed(&store, b"key").await;
    assert!(error.to_string().contains("BUSY"), "{error}");
    until_open(&store, b"key").await;
    server.run("SCRIPT KILL").await;
    until_healed(&store, b"key").await;
    hogging.await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_still_loading() {
    let mut server = Server::start_with(&["--key-load-delay", "0"]).await;
    let fill = "for i = 1, 3000 do redis.call('SET', 'filler' .. i, string.rep('x', 2000)) end";
    let mut connection = server.connect().await;
    redis::cmd("EVAL").arg(fill).arg(0).exec_async(&mut connection).await.unwrap();
    server.run("SAVE").await;
    let mut options = long_deadline();
    // What the server says is to be seen for as long as it says it.
    options.breaker_errors = u32::MAX;
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    until_healed(&store, b"key").await;
    server.kill();
    server.relaunch_with(&[
        "--key-load-delay",
        "1000",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    // Until it listens it is only absent.
    loop {
        let error = until_failed(&store, b"key").await;
        if error.to_string().contains("LOADING") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    until_healed(&store, b"key").await;
}

#[tokio::test]
async fn as_many_clients_as_it_accepts() {
    let server = Server::start().await;
    let mut admin = server.connect().await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(server.connect().await);
    }
    let limit = |most: &str| {
        let mut command = redis::cmd("CONFIG");
        command.arg("SET").arg("maxclients").arg(most);
        command
    };
    limit("5").exec_async(&mut admin).await.unwrap();
    let mut options = long_deadline();
    options.breaker_probe = Duration::from_millis(50);
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let error = until_failed(&store, b"key").await;
    assert!(error.is_transient(), "{error}");
    until_open(&store, b"key").await;
    drop(others);
    limit("100").exec_async(&mut admin).await.unwrap();
    until_healed(&store, b"key").await;
}

/// What is lost of several connections to a full server cannot be replaced; the rest decides.
#[tokio::test]
async fn a_full_server_decides_over_the_connections_that_it_has() {
    for credentials in [(None, None), (Some("own".to_owned()), Some("marker-pw".to_owned()))] {
        let server = Server::start().await;
        server.run("ACL SETUSER own on >marker-pw ~* +@all").await;
        let mut admin = server.connect().await;
        let notes = RecordingObserver::default();
        let mut options = long_deadline();
        options.connections = 2;
        options.observer = Some(Arc::new(notes.clone()));
        let endpoint = server.endpoint().credentials(credentials.0, credentials.1);
        let store = RedisStore::open(&endpoint, options).unwrap();
        store.attach_thread(1);
        until_healed(&store, b"key").await;
        while notes.count("connected") < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let clients = |admin: &redis::aio::MultiplexedConnection| {
            let mut admin = admin.clone();
            async move {
                let list: String =
                    redis::cmd("CLIENT").arg("LIST").query_async(&mut admin).await.unwrap();
                let own = list.lines().filter(|line| !line.contains("cmd=client"));
                own.map(|line| line.split([' ', '=']).nth(1).unwrap().to_owned()).collect()
            }
        };
        let ids: Vec<String> = clients(&admin).await;
        let mut full = redis::cmd("CONFIG");
        full.arg("SET").arg("maxclients").arg(1).exec_async(&mut admin).await.unwrap();
        // All but one, in whichever order they came about.
        for id in &ids[1..] {
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("ID").arg(id).exec_async(&mut admin).await.unwrap();
        }
        while notes.count("failed to connect") < 20 {
            let taken = take(&store, b"key", &a_day(4_000_000_000)).await;
            let lost = |error: &StoreError| error.to_string().contains("closed the connection");
            assert!(taken.as_ref().is_ok() || taken.as_ref().is_err_and(lost), "{taken:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(take(&store, b"key", &a_day(4_000_000_000)).await.unwrap());
        assert!(!store.is_breaker_open(), "{:?}", notes.all());
    }
}

#[tokio::test]
async fn scripts_that_are_wiped_while_everybody_asks() {
    let server = Server::start().await;
    let store = Arc::new(RedisStore::open(&server.endpoint(), long_deadline()).unwrap());
    let params = a_day(1_000);
    let wiping = async {
        for _ in 0..200 {
            server.run("SCRIPT FLUSH").await;
        }
    };
    let asking = async {
        let mut admitted = 0;
        for _ in 0..100 {
            let asked = (0..15).map(|_| take(&store, b"key", &params));
            for taken in futures_util::future::join_all(asked).await {
                admitted += usize::from(taken.expect("no caller sees it"));
            }
            store
                .call(0, StoreCall::Reset { limit: 2, key: b"another" }, &mut Answers::default())
                .await
                .expect("nor does this");
        }
        admitted
    };
    let ((), admitted) = futures_util::future::join(wiping, asking).await;
    assert_eq!(admitted, 1_000, "each is counted once");
}

#[tokio::test]
async fn a_server_that_is_killed_and_returns() {
    let mut server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), short_deadline()).unwrap();
    until_healed(&store, b"key").await;
    server.kill();
    let error = until_failed(&store, b"key").await;
    assert!(error.is_transient(), "{error}");
    until_open(&store, b"key").await;
    server.relaunch();
    until_healed(&store, b"key").await;
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), short_deadline()).unwrap();
    until_healed(&store, b"key").await;
    server.signal("STOP");
    let error = until_failed(&store, b"key").await;
    assert_eq!(error.kind, StoreErrorKind::Timeout);
    until_open(&store, b"key").await;
    let mut answers = Answers::default();
    let error = store.call(NOW_US, StoreCall::Adjust(&[]), &mut answers).await;
    assert!(error.is_ok(), "nothing was asked of it");
    let error = store
        .call(0, StoreCall::Reset { limit: 1, key: b"key" }, &mut Answers::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::BreakerOpen);
    server.signal("CONT");
    until_healed(&store, b"key").await;
}

#[tokio::test]
async fn a_server_that_is_not_there_yet() {
    let mut server = Server::start().await;
    server.kill();
    let store = RedisStore::open(&server.endpoint(), short_deadline()).unwrap();
    assert!(until_failed(&store, b"key").await.is_transient());
    // The breaker opens without a request.
    while !store.is_breaker_open() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!store.status().is_ready());
    server.relaunch();
    while store.is_breaker_open() || !store.status().is_ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
}

#[tokio::test]
async fn callers_that_go_away_shift_no_replies() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let (some, none) = (a_day(4_000_000_000), a_day(0));
    until_healed(&store, b"key").await;
    for round in 0..300_u64 {
        let goes = take(&store, b"goes", &none);
        // It is dropped as soon as it was sent, or before.
        let gone = tokio::time::timeout(Duration::from_micros(round), goes).await;
        if let Ok(taken) = gone {
            assert!(!taken.unwrap());
        }
        let (stays, refused) =
            futures_util::future::join(take(&store, b"stays", &some), take(&store, b"no", &none))
                .await;
        assert!(stays.unwrap(), "round {round}");
        assert!(!refused.unwrap(), "round {round}");
    }
}
