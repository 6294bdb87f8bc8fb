//! Peeks that replicas answer: what they say, and what happens without one.

use crate::support::server::Server;
use crate::support::{NOW_US, a_day, long_deadline, take, until_healed};
use std::time::Duration;
use tollgate_core::{Intent, LimitParams, Outcome, Penalty};
use tollgate_store::conformance::algorithms;
use tollgate_store::redis::{Endpoint, RedisOptions};
use tollgate_store::{
    Answers, Charge, ChargeMode, ParamsId, RedisStore, Request, Store, StoreCall,
};

/// A store that may peek at replicas.
pub(crate) fn reading() -> RedisOptions {
    let mut options = long_deadline();
    options.replica_reads = true;
    options
}

/// Whether the request would be admitted, and its rows.
pub(crate) async fn peek(
    store: &RedisStore,
    keys: &[&[u8]],
    params: &LimitParams,
    penalty: Option<&Penalty>,
) -> (bool, Vec<Outcome>) {
    let (limit, params_id, cost, mode) = (1, ParamsId::default(), 1, ChargeMode::Enforce);
    let charges: Vec<_> = keys
        .iter()
        .map(|key| Charge { limit, key, params, params_id, cost, mode, penalty })
        .collect();
    let mut answers = Answers::default();
    let requests = [Request { charges: &charges, intent: Intent::Peek }];
    store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await.unwrap();
    let (admitted, rows) = answers.get(0).unwrap();
    (admitted, rows.iter().map(|row| row.outcome).collect())
}

/// How many read-only script calls a server has had.
pub(crate) async fn reads(server: &Server) -> u64 {
    calls(server, "evalsha_ro").await + calls(server, "eval_ro").await
}

/// Calls of a command.
pub(crate) async fn calls(server: &Server, command: &str) -> u64 {
    let stats = format!("{:?}", server.run("INFO commandstats").await);
    let Some((_, rest)) = stats.split_once(&format!("cmdstat_{command}:calls=")) else { return 0 };
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Peeks until one of the servers has answered.
pub(crate) async fn until_read(store: &RedisStore, servers: &[&Server]) {
    for _ in 0..2_000 {
        peek(store, &[b"any"], &a_day(1), None).await;
        for server in servers {
            if reads(server).await > 0 {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no replica was read");
}

async fn pair() -> (Server, Server) {
    let primary = Server::listen(&["--repl-diskless-sync-delay", "0"]).await;
    let of_primary = ["--replicaof", &format!("127.0.0.1 {}", primary.port)];
    let replica = Server::listen(&of_primary).await;
    crate::cluster::until_says(&replica, "INFO replication", "link_status:up").await;
    (primary, replica)
}

/// Waits until the replica has all that was written so far. `WAIT` looks at the writes of its own
/// connection, so this makes one: those of others came before it.
async fn until_replicated(primary: &Server) {
    let mut connection = primary.connect().await;
    redis::cmd("SET").arg("mark").arg(1).exec_async(&mut connection).await.unwrap();
    redis::cmd("WAIT").arg(1).arg(0).exec_async(&mut connection).await.unwrap();
}

#[tokio::test]
async fn a_replica_answers_peeks_and_nothing_else() {
    let (primary, replica) = pair().await;
    let endpoint = Endpoint::tcp("127.0.0.1", primary.port);
    let plain = RedisStore::open(&endpoint, long_deadline()).unwrap();
    let store = RedisStore::open(&endpoint, reading()).unwrap();
    until_healed(&store, b"key").await;
    until_read(&store, &[&replica]).await;
    let before = reads(&replica).await;
    let penalty = Penalty::try_new(3, 60_000_000, 2_000, 600_000_000).ok();
    let mut peeks = 0;
    for (number, params) in algorithms(5).enumerate() {
        for taken in 0..7 {
            let key = format!("{number}");
            take(&store, key.as_bytes(), &params).await.unwrap();
            until_replicated(&primary).await;
            for penalty in [None, penalty.as_ref()] {
                let keys: [&[u8]; 2] = [key.as_bytes(), b"other"];
                let seen = peek(&store, &keys, &params, penalty).await;
                assert_eq!(seen, peek(&plain, &keys, &params, penalty).await, "{params:?} {taken}");
                peeks += 1;
            }
        }
    }
    // A script that the replica does not have yet is asked for twice.
    assert!(reads(&replica).await >= before + peeks, "every peek was the replica's");
    assert_eq!(reads(&primary).await, 0);
    let stats = format!("{:?}", replica.run("INFO commandstats").await);
    assert!(!stats.contains("cmdstat_evalsha:") && !stats.contains("cmdstat_eval:"), "{stats}");
}

#[tokio::test]
async fn without_a_replica_that_follows_the_primary_answers() {
    let (primary, mut replica) = pair().await;
    let store = RedisStore::open(&Endpoint::tcp("127.0.0.1", primary.port), reading()).unwrap();
    until_healed(&store, b"key").await;
    until_read(&store, &[&replica]).await;
    // It follows no primary any more, and does not hear of this.
    replica.run("REPLICAOF NO ONE").await;
    assert!(take(&store, b"one", &a_day(5)).await.unwrap());
    until_left(&store, b"one", 4).await;
    replica.run(&format!("REPLICAOF 127.0.0.1 {}", primary.port)).await;
    crate::cluster::until_says(&replica, "INFO replication", "link_status:up").await;
    let before = reads(&replica).await;
    for _ in 0..2_000 {
        peek(&store, &[b"one"], &a_day(5), None).await;
        if reads(&replica).await > before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(reads(&replica).await > before, "it is read again");
    // Its death has no visible effect.
    replica.kill();
    assert!(take(&store, b"one", &a_day(5)).await.unwrap());
    until_left(&store, b"one", 3).await;
}

async fn until_left(store: &RedisStore, key: &[u8], left: u64) {
    for _ in 0..1_000 {
        if peek(store, &[key], &a_day(5), None).await.1[0].remaining == left {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the peek stays stale");
}
