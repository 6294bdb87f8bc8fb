//! Tables that nodes share: the latest value of each name, whatever happens to the server.

use crate::Server;
use crate::support::long_deadline;
use std::collections::BTreeMap;
use tollgate_store::RedisStore;
use tollgate_store::redis::{SharedChange, SharedTable};

const TABLE: &str = "test";

fn set<'a>(name: &'a str, value: &'a str) -> Option<SharedChange<'a>> {
    Some(SharedChange { name, is_cleared: false, value })
}

fn clear(name: &str) -> Option<SharedChange<'_>> {
    Some(SharedChange { name, is_cleared: true, value: "" })
}

/// The names that are not cleared, and their values.
fn shown(table: &SharedTable) -> BTreeMap<&str, &str> {
    let live = table.iter().filter(|(_, value)| !value.is_cleared);
    live.map(|(name, value)| (name, &*value.value)).collect()
}

async fn write(
    store: &RedisStore,
    known: &SharedTable,
    change: Option<SharedChange<'_>>,
) -> SharedTable {
    store.write_shared_table(TABLE, known, change).await.unwrap()
}

#[tokio::test]
async fn the_last_write_of_a_name_wins_and_all_nodes_read_it() {
    let server = Server::start().await;
    let [one, two] =
        [(); 2].map(|()| RedisStore::open(&server.endpoint(), long_deadline()).unwrap());
    let nothing = SharedTable::default();
    assert_eq!(one.shared_table(TABLE).await.unwrap(), nothing);
    write(&one, &nothing, set("a", "1")).await;
    write(&two, &nothing, set("b", "2")).await;
    write(&two, &nothing, set("a", "3")).await;
    let table = one.shared_table(TABLE).await.unwrap();
    assert_eq!(shown(&table), BTreeMap::from([("a", "3"), ("b", "2")]));
    let versions: Vec<_> = table.iter().map(|(_, value)| &value.version[..16]).collect();
    assert_eq!(versions, ["0000000000000003", "0000000000000002"]);
    let cleared = write(&one, &table, clear("a")).await;
    assert_eq!(shown(&cleared), BTreeMap::from([("b", "2")]));
    assert_eq!(write(&two, &table, None).await, cleared, "an earlier value does not come back");
}

/// A cluster has the table at one of its servers.
pub(crate) async fn a_cluster_has_it_too(store: &RedisStore) {
    let nothing = SharedTable::default();
    let written = write(store, &nothing, set("a", "1")).await;
    assert_eq!(shown(&written), BTreeMap::from([("a", "1")]));
    assert_eq!(store.shared_table(TABLE).await.unwrap(), written);
}

#[tokio::test]
async fn many_writers_at_once_each_leave_their_own_version() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let (store, nothing) = (&store, &SharedTable::default());
    let values: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let writes = values.iter().map(|value| write(store, nothing, set("one", value)));
    let tables = futures_util::future::join_all(writes).await;
    let last = tables.iter().max_by_key(|table| table.get("one").unwrap().version.clone()).unwrap();
    assert!(last.get("one").unwrap().version.starts_with("0000000000000040"));
    assert_eq!(&store.shared_table(TABLE).await.unwrap(), last);
}

#[tokio::test]
async fn a_table_that_was_lost_comes_back_from_any_node_and_merges() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let nothing = SharedTable::default();
    let early = write(&store, &nothing, set("a", "old")).await;
    let late = write(&store, &early, set("a", "new")).await;
    let late = write(&store, &late, clear("b")).await;
    server.run("FLUSHALL").await;
    // A node that knows nothing writes first; then one that missed the last change.
    write(&store, &nothing, set("c", "3")).await;
    write(&store, &early, None).await;
    let merged = write(&store, &late, None).await;
    assert_eq!(shown(&merged), BTreeMap::from([("a", "new"), ("c", "3")]));
    let next = write(&store, &nothing, set("a", "newest")).await;
    assert_eq!(shown(&next)["a"], "newest", "versions go on from the latest that was known");
}

#[tokio::test]
async fn a_table_has_room_for_256_names_and_cleared_ones_make_room() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let mut table = SharedTable::default();
    for n in 0..256 {
        table = write(&store, &table, set(&format!("n{n}"), "v")).await;
    }
    let full = store.write_shared_table(TABLE, &table, set("more", "v")).await.unwrap_err();
    assert!(full.detail.contains("full"), "{full}");
    assert_eq!(store.shared_table(TABLE).await.unwrap(), table, "a refused change leaves nothing");
    write(&store, &table, set("n7", "again")).await;
    write(&store, &table, clear("n9")).await;
    let table = write(&store, &SharedTable::default(), set("more", "v")).await;
    assert_eq!((table.iter().count(), table.get("n9")), (256, None));
    assert_eq!(shown(&table)["n7"], "again");
}

#[tokio::test]
async fn a_key_that_holds_anything_else_is_left_out() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let odd = "9\t+\ta\tx\nnonsense\n\n99999999\t+\t\t\n";
    let mut command = redis::cmd("SET");
    command.arg("tg:{test}:t").arg(odd);
    command.exec_async(&mut server.connect().await).await.unwrap();
    assert_eq!(store.shared_table(TABLE).await.unwrap(), SharedTable::default());
    let table = write(&store, &SharedTable::default(), set("a", "1")).await;
    assert_eq!(shown(&table), BTreeMap::from([("a", "1")]));
}
