//! On clusters of real servers.

mod interrupted_end;
mod migrating_slot;
mod moving_marker;
mod primary_batches;

use crate::leased::spread::Spread;
use crate::support::server::Server;
use crate::support::{NOW_US, a_day, long_deadline, take, take_all, until_healed};
use futures_util::future::{join, join_all};
use migrating_slot::{reservations_that_are_half_way, slots_that_are_half_way};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tollgate_core::{Intent, LimitParams};
use tollgate_store::conformance::{self, algorithms};
use tollgate_store::redis::{Endpoint, RedisOptions};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, ParamsId, RedisStore, Request, Store,
    StoreCall,
};

pub(crate) struct Cluster {
    pub(crate) servers: Vec<Server>,
}

impl Cluster {
    async fn start(primaries: usize, replicas: usize) -> Self {
        let mut servers = Vec::new();
        for _ in 0..primaries * (1 + replicas) {
            let arguments = [
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                "3000",
                "--cluster-replica-validity-factor",
                "0",
                "--repl-diskless-sync-delay",
                "0",
                "--cluster-require-full-coverage",
                "no",
            ];
            servers.push(Server::listen(&arguments).await);
        }
        let cluster = Self { servers };
        let nodes: Vec<_> =
            cluster.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        let mut create = vec!["create"];
        create.extend(nodes.iter().map(String::as_str));
        let replicas = replicas.to_string();
        create.extend(["--cluster-replicas", &replicas, "--cluster-yes"]);
        redis_cli(&create).await;
        for server in &cluster.servers {
            until_says(server, "CLUSTER INFO", "cluster_state:ok").await;
        }
        cluster
    }

    fn open(&self, options: RedisOptions) -> RedisStore {
        // One is enough: the others are found through it.
        let endpoint = Endpoint::cluster([("127.0.0.1".into(), self.servers[0].port)]);
        RedisStore::open(&endpoint, options).unwrap()
    }

    pub(crate) async fn flush(&self) {
        for server in &self.servers[..3] {
            server.run("FLUSHALL").await;
        }
    }

    /// The one key there is.
    pub(crate) async fn only_key(&self) -> String {
        let mut all = Vec::<String>::new();
        for server in &self.servers[..3] {
            let mut connection = server.connect().await;
            let keys: Vec<String> =
                redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
            all.extend(keys);
        }
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    pub(crate) async fn id(&self, server: usize) -> String {
        match self.servers[server].run("CLUSTER MYID").await {
            redis::Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn until_says(server: &Server, words: &str, what: &str) {
    for _ in 0..6_000 {
        if format!("{:?}", server.run(words).await).contains(what) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{words} did not say {what} within a minute");
}

/// Runs `redis-cli --cluster` without holding up the runtime.
async fn redis_cli(arguments: &[&str]) {
    let output = try_redis_cli(arguments).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

async fn try_redis_cli(arguments: &[&str]) -> Output {
    let mut command = Command::new("redis-cli");
    command.arg("--cluster").args(arguments).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Waits until what moved before is known to all: nothing can be moved until then.
async fn until_agreed(address: &str) {
    for _ in 0..600 {
        let output = try_redis_cli(&["check", address]).await;
        if output.status.success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the servers did not agree within a minute");
}

/// How much a key has left.
async fn left(store: &RedisStore, limit: u64, key: &[u8], params: &LimitParams) -> u64 {
    let (params_id, cost, mode) = (ParamsId::default(), 1, ChargeMode::Enforce);
    let charge = Charge { limit, key, params, params_id, cost, mode, penalty: None };
    let change = Change::Owe { units: 0 };
    let mut answers = Answers::default();
    store
        .call(NOW_US, StoreCall::Adjust(&[Adjustment { charge, change }]), &mut answers)
        .await
        .unwrap();
    answers.get(0).unwrap().1[0].outcome.remaining
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster() {
    let mut cluster = Cluster::start(3, 1).await;
    every_rule_holds(&cluster.open(long_deadline())).await;
    cluster.flush().await;
    let store = cluster.open(long_deadline());
    requests_of_one_caller_come_one_after_the_other(&store).await;
    for params in algorithms(50).filter(|params| !matches!(params, LimitParams::LeakyBucket(_))) {
        split_requests_count_for_all_slots_or_none(&store, params).await;
    }
    cluster.flush().await;
    crate::shared_table::a_cluster_has_it_too(&store).await;
    crate::differential::sampled(&store, 60, async || cluster.flush().await).await;
    let keys: [&[u8]; 4] = [b"slots 1", b"slots 2", b"slots 3", b"slots 4"];
    crate::unread_replies::unread_slots_are_given_back(&store, &keys).await;
    slots_that_are_half_way(&cluster, &store).await;
    reservations_that_are_half_way(&cluster, &store).await;
    slots_that_move_lose_and_double_nothing(&cluster, &store).await;
    drop(store);
    replicas_answer_peeks(&cluster).await;
    leases_keep_their_limits(&mut cluster).await;
    a_primary_that_dies_is_replaced(&mut cluster).await;
    a_planned_failover_costs_no_grace_period(&cluster).await;
}

/// The old primary proves that the new one has all its writes.
async fn a_planned_failover_costs_no_grace_period(cluster: &Cluster) {
    let nodes = (0..2).map(|_| cluster.open(crate::leased::client::options()));
    let mut spread = Spread::of(8, nodes.collect());
    spread.round(100).await;
    let before = spread.grace_periods();
    let master_port = format!("master_port:{}", cluster.servers[1].port);
    let mut replica = None;
    for server in &cluster.servers[3..] {
        let said = format!("{:?}", server.run("INFO replication").await);
        replica = replica.or(said.contains(&master_port).then_some(server));
    }
    let replica = replica.expect("every primary has a replica");
    let fail_over = async {
        // Redis may give it up after five seconds, without a word.
        while !format!("{:?}", replica.run("ROLE").await).contains("master") {
            replica.run("CLUSTER FAILOVER").await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    join(fail_over, spread.round(100)).await;
    spread.round(150).await;
    assert_eq!(spread.grace_periods(), before, "no write was lost");
    spread.check(false);
}

/// Also over several slots, each asked at a replica of its own.
async fn replicas_answer_peeks(cluster: &Cluster) {
    use crate::replica::{peek, reading, reads, until_read};
    let (store, plain) = (cluster.open(reading()), cluster.open(long_deadline()));
    until_healed(&store, b"key").await;
    until_read(&store, &cluster.servers.iter().collect::<Vec<_>>()).await;
    let keys: Vec<Vec<u8>> = (0..8).map(|n| format!("peeked {n}").into_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    assert!(take_all(&store, &keys, &a_day(9)).await.unwrap());
    let mut read = 0;
    for _ in 0..1_000 {
        let seen = peek(&store, &keys, &a_day(9), None).await;
        read = 0;
        for server in &cluster.servers {
            read += usize::from(reads(server).await > 0);
        }
        if read == 3 && seen == peek(&plain, &keys, &a_day(9), None).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{read} of 3 replicas were read");
}

/// While all is well and while slots move. After a failover what the store decided itself may be
/// forgotten.
async fn leases_keep_their_limits(cluster: &mut Cluster) {
    let open = |_| cluster.open(crate::leased::client::options());
    let mut spread = Spread::new((0..2).map(open).collect());
    spread.round(250).await;
    let (from, to) = (cluster.id(1).await, cluster.id(0).await);
    let address = format!("127.0.0.1:{}", cluster.servers[0].port);
    let which = ["--cluster-from", &from, "--cluster-to", &to, "--cluster-slots", "1500"];
    let arguments = [&["reshard", &address][..], &which, &["--cluster-yes"]].concat();
    until_agreed(&address).await;
    join(redis_cli(&arguments), spread.round(100)).await;
    spread.round(150).await;
    spread.check(false);
    spread.check_use();
}

/// The suite without its traces: they turn the clock back, and then it shows that another slot had
/// counted a request for a moment.
async fn every_rule_holds(store: &RedisStore) {
    conformance::batches(store).await;
    conformance::all_or_nothing(store).await;
    conformance::costs(store).await;
    conformance::peeks(store).await;
    conformance::shadows(store).await;
    conformance::tier_changes(store).await;
    conformance::blocks(store).await;
    conformance::block_ends(store).await;
    conformance::uncounted(store).await;
    conformance::operators_blocks(store).await;
    conformance::settled(store).await;
    conformance::ended_once(store).await;
    conformance::expiring(store).await;
    conformance::give_backs(store).await;
    conformance::debts(store).await;
    conformance::resets(store).await;
}

/// Ten rounds of a batch over many slots: each client's requests in their order, those over several
/// slots too.
async fn requests_of_one_caller_come_one_after_the_other(store: &RedisStore) {
    let (limit, params_id, cost, mode, penalty) =
        (2, ParamsId::default(), 1, ChargeMode::Enforce, None);
    let (few, none) = (a_day(3), a_day(0));
    for round in 0..10 {
        let keys: Vec<_> = (0..8).map(|n| format!("round {round} {n}").into_bytes()).collect();
        let charge = |key, params| Charge { limit, key, params, params_id, cost, mode, penalty };
        let one = |n: usize| vec![charge(&keys[n % 8], &few)];
        // Counts for one of them, until the other has refused it.
        let split = |n: usize| vec![charge(&keys[n % 8], &few), charge(b"nobody", &none)];
        let charges: Vec<_> = (0..60).map(|n| if n % 5 == 4 { split(n) } else { one(n) }).collect();
        let requests: Vec<_> =
            charges.iter().map(|charges| Request { charges, intent: Intent::Take }).collect();
        let mut answers = Answers::default();
        store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await.unwrap();
        let mut left = [3; 8];
        for (n, charges) in charges.iter().enumerate() {
            let (admitted, rows) = answers.get(n).unwrap();
            let expected = charges.len() == 1 && left[n % 8] > 0;
            left[n % 8] -= u64::from(expected);
            assert_eq!(admitted, expected, "round {round}, request {n}");
            assert_eq!(rows[0].outcome.remaining, left[n % 8], "round {round}, request {n}");
        }
    }
}

async fn split_requests_count_for_all_slots_or_none(store: &RedisStore, many: LimitParams) {
    let none = a_day(0);
    // Every second request is refused by its own key, after the shared one may have counted it.
    let asks = (0..400_u32).map(async |n| {
        let own = format!("own {n}");
        let keys: [&[u8]; 3] = [b"shared", b"also shared", own.as_bytes()];
        match n % 2 {
            0 => take_all(store, &keys, &many).await.unwrap(),
            _ => {
                let mixed = [(keys[0], &many), (keys[1], &many), (keys[2], &none)];
                crate::support::take_mixed(store, &mixed).await.unwrap()
            }
        }
    });
    let admitted = join_all(asks).await.into_iter().filter(|admitted| *admitted).count() as u64;
    assert!(admitted <= 50, "never more than the limit: {admitted}");
    // What is being returned is soon back; nothing else was ever taken.
    for key in [&b"shared"[..], b"also shared"] {
        for _ in 0..1_000 {
            if left(store, 1, key, &many).await == 50 - admitted {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let name = many.algorithm();
        assert_eq!(left(store, 1, key, &many).await, 50 - admitted, "{name}: all of it came back");
    }
}

async fn slots_that_move_lose_and_double_nothing(cluster: &Cluster, store: &RedisStore) {
    let done = AtomicBool::new(false);
    let address = format!("127.0.0.1:{}", cluster.servers[0].port);
    let (from, to) = (cluster.id(0).await, cluster.id(1).await);
    let moving = async {
        for (from, to) in [(&from, &to), (&to, &from)] {
            let arguments = [
                "reshard",
                &address,
                "--cluster-from",
                from,
                "--cluster-to",
                to,
                "--cluster-slots",
                "1000",
                "--cluster-yes",
            ];
            until_agreed(&address).await;
            redis_cli(&arguments).await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let asking = async {
        let (keys, params) = (60, a_day(4_000_000_000));
        let mut rounds = 0;
        while !done.load(Ordering::Relaxed) {
            let ask = async |n: u32| {
                let key = format!("moving {n}");
                // Two limits of one client, in one slot, and twice at once.
                let ask = || take(store, key.as_bytes(), &params);
                let (one, other) = join(ask(), ask()).await;
                assert!(one.expect("no caller sees it") && other.expect("no caller sees it"));
            };
            join_all((0..keys).map(ask)).await;
            rounds += 1;
        }
        (keys, rounds)
    };
    let ((), (keys, rounds)) = join(moving, asking).await;
    for n in 0..keys {
        let key = format!("moving {n}");
        let used = 4_000_000_000 - left(store, 1, key.as_bytes(), &a_day(4_000_000_000)).await;
        assert_eq!(used, 2 * rounds, "{key}");
    }
}

async fn a_primary_that_dies_is_replaced(cluster: &mut Cluster) {
    let mut options = long_deadline();
    options.deadline = Duration::from_millis(500);
    options.breaker_probe = Duration::from_millis(100);
    let store = cluster.open(options.clone());
    let keys: Vec<_> = (0..30).map(|n| format!("key {n}").into_bytes()).collect();
    for key in &keys {
        until_healed(&store, key).await;
    }
    cluster.flush().await;
    let mut brisk = crate::leased::client::options();
    (brisk.deadline, brisk.breaker_probe) = (options.deadline, options.breaker_probe);
    let mut spread = Spread::new((0..2).map(|_| cluster.open(brisk.clone())).collect());
    spread.round(200).await;
    let before = spread.grace_periods();
    cluster.servers[2].kill();
    let params = a_day(4_000_000_000);
    let asked = join_all(keys.iter().map(|key| take(&store, key, &params))).await;
    let failed = asked.iter().filter(|asked| asked.is_err()).count();
    assert!(failed < keys.len(), "only the slots of that server are affected");
    for key in &keys {
        until_healed(&store, key).await;
    }
    spread.round(300).await;
    assert!(spread.grace_periods() > before, "nobody can say what was lost");
    spread.check(true);
}
