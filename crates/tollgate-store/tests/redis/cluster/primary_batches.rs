//! Batches over several slots of a primary, while slots move and one primary cannot have them.

use super::{Cluster, left};
use crate::replica::calls as script_calls;
use crate::support::{NOW_US, long_deadline};
use futures_util::future::{join, join_all};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::UnixStream;
use tollgate_core::{Intent, LimitParams};
use tollgate_store::conformance::algorithms;
use tollgate_store::{
    Answers, Charge, ChargeMode, ParamsId, RedisStore, Request, Store, StoreCall, StoreError,
};

const CLIENTS: usize = 48;
/// Limits of each client.
const LIMITS: u64 = 3;
const COUNT: u64 = 120;
const ROUNDS: usize = 30;
const REQUESTS: usize = 120;
const SEEDS: u64 = 6;

/// A random generator that a seed repeats.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// One limit of one client.
type Key = (usize, u64);

/// The oracle: how many requests with each key were sent and admitted.
#[derive(Default)]
struct Counts {
    asked: HashMap<Key, u64>,
    admitted: HashMap<Key, u64>,
    /// Keys of requests over several limits. Their limits refuse for each other.
    shared: HashMap<Key, bool>,
}

fn name(client: usize) -> Vec<u8> {
    let text = format!("client {client}");
    [&[text.len() as u8 + 1], text.as_bytes()].concat()
}

/// What clients ask for. Each kind of batch has a script of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    /// One limit a request, of algorithms that `decide_single.lua` knows.
    Singles,
    /// Any number of limits, of algorithms that `decide_fast.lua` knows.
    Fast,
    /// Any number of limits, of any algorithm.
    Any,
}

/// Each client has another algorithm.
fn params(mix: Mix, client: usize) -> LimitParams {
    let is_mixed = |one: &LimitParams| match one {
        LimitParams::FixedWindow(_) | LimitParams::SlidingWindow(_) | LimitParams::Gcra(_) => true,
        LimitParams::LeakyBucket(_) => false,
        _ => mix == Mix::Any,
    };
    let all: Vec<_> = algorithms(COUNT).filter(is_mixed).collect();
    all[client % all.len()]
}

/// Mostly one limit, or several of one client; sometimes of two clients. The first half of all
/// clients has requests with one limit only.
fn random_request(mix: Mix, random: &mut SplitMix) -> Vec<Key> {
    let client = random.below(CLIENTS);
    match random.below(10) {
        _ if mix == Mix::Singles => vec![(client, random.below(LIMITS as usize) as u64)],
        0..5 => vec![(client, random.below(LIMITS as usize) as u64)],
        _ if client < CLIENTS / 2 => vec![(client, random.below(LIMITS as usize) as u64)],
        5..8 => (0..LIMITS).map(|limit| (client, limit)).collect(),
        _ => {
            let other = CLIENTS / 2 + random.below(CLIENTS / 2);
            vec![(client, 0), (other, 1), (client, 2)]
        }
    }
}

async fn take(store: &RedisStore, mix: Mix, keys: &[Key]) -> Result<bool, StoreError> {
    let named: Vec<_> =
        keys.iter().map(|(client, limit)| (name(*client), *limit, params(mix, *client))).collect();
    let (params_id, cost, mode, penalty) = (ParamsId::default(), 1, ChargeMode::Enforce, None);
    let charges: Vec<_> = named
        .iter()
        .map(|(key, limit, params)| Charge {
            limit: *limit + 1,
            key,
            params,
            params_id,
            cost,
            mode,
            penalty,
        })
        .collect();
    let mut answers = Answers::default();
    let requests = [Request { charges: &charges, intent: Intent::Take }];
    store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await?;
    Ok(answers.get(0).unwrap().0)
}

/// Asks rounds of requests at once, through two stores.
async fn ask(stores: &[RedisStore; 2], mix: Mix, random: &mut SplitMix) -> Counts {
    let mut counts = Counts::default();
    for _ in 0..ROUNDS {
        let requests: Vec<_> = (0..REQUESTS).map(|_| random_request(mix, random)).collect();
        let asks = requests.iter().enumerate().map(|(n, keys)| take(&stores[n % 2], mix, keys));
        for (keys, admitted) in requests.iter().zip(join_all(asks).await) {
            let admitted = admitted.expect("no caller sees that slots move");
            for key in keys {
                *counts.asked.entry(*key).or_default() += 1;
                *counts.admitted.entry(*key).or_default() += u64::from(admitted);
                *counts.shared.entry(*key).or_default() |= keys.len() > 1;
            }
        }
    }
    counts
}

/// Moves slots of random clients between random servers, key by key.
async fn migrate(
    cluster: &Cluster,
    store: &RedisStore,
    mix: Mix,
    owners: &mut HashMap<i64, usize>,
    random: &mut SplitMix,
    done: &AtomicBool,
) {
    let ids = [cluster.id(0).await, cluster.id(1).await, cluster.id(2).await];
    while !done.load(Ordering::Relaxed) {
        let (key, params) = {
            let client = random.below(CLIENTS);
            (name(client), params(mix, client))
        };
        let charge = Charge {
            limit: 1,
            key: &key,
            params: &params,
            params_id: ParamsId::default(),
            cost: 1,
            mode: ChargeMode::Enforce,
            penalty: None,
        };
        let key = String::from_utf8(store.state_key(&charge).as_bytes().to_vec()).unwrap();
        let slot = cluster.servers[0].run(&format!("CLUSTER KEYSLOT {key}")).await;
        let redis::Value::Int(slot) = slot else { panic!("{slot:?}") };
        // `redis-cli --cluster create` gives each server a third, in order.
        let owner = owners.get(&slot).copied().unwrap_or(slot as usize / 5_461);
        let target = (owner + 1 + random.below(2)) % 3;
        owners.insert(slot, target);
        let (from, to) = (&cluster.servers[owner], &cluster.servers[target]);
        to.run(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[owner])).await;
        from.run(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[target])).await;
        let mut connection = from.connect().await;
        loop {
            let mut one = redis::cmd("CLUSTER");
            one.arg("GETKEYSINSLOT").arg(slot).arg(1);
            let keys: Vec<String> = one.query_async(&mut connection).await.unwrap();
            let Some(key) = keys.first() else { break };
            from.run(&format!("MIGRATE 127.0.0.1 {} {key} 0 10000", to.port)).await;
        }
        let end = format!("CLUSTER SETSLOT {slot} NODE {}", ids[target]);
        for server in [to, from, &cluster.servers[3 - owner - target]] {
            server.run(&end).await;
        }
    }
}

/// Counts the reads of keys that had moved away from a server.
async fn misses(cluster: &Cluster, server: usize) -> u64 {
    let stats = cluster.servers[server].run("INFO errorstats").await;
    let stats: String = redis::from_redis_value(stats).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("errorstat_ERR:count="));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_counted_once_while_slots_move() {
    let cluster = Cluster::start(3, 0).await;
    // This server gets calls of one slot, as one before Redis 7 does.
    cluster.servers[2].run("ACL SETUSER default -eval_ro").await;
    let mut owners = HashMap::new();
    for seed in 0..SEEDS {
        let mix = [Mix::Singles, Mix::Fast, Mix::Any][seed as usize % 3];
        cluster.flush().await;
        let mut random = SplitMix(seed);
        let mut movements = SplitMix(seed + 1_000);
        let stores = [cluster.open(long_deadline()), cluster.open(long_deadline())];
        let done = AtomicBool::new(false);
        let asking = async {
            let counts = ask(&stores, mix, &mut random).await;
            done.store(true, Ordering::Relaxed);
            counts
        };
        let moving = migrate(&cluster, &stores[0], mix, &mut owners, &mut movements, &done);
        let (counts, ()) = join(asking, moving).await;
        check(&stores[0], mix, &counts, seed).await;
    }
    let missed = misses(&cluster, 0).await + misses(&cluster, 1).await;
    assert!(missed > 0, "no batch over several slots met a key that had moved");
}

async fn check(store: &RedisStore, mix: Mix, counts: &Counts, seed: u64) {
    for (key, asked) in &counts.asked {
        let admitted = counts.admitted[key];
        let fits = COUNT.min(*asked);
        let at = format!("seed {seed}, {mix:?}, client {}, limit {}", key.0, key.1);
        assert!(admitted <= fits, "{at}: {admitted} of {fits}");
        if !counts.shared[key] {
            assert_eq!(admitted, fits, "{at}: admitted");
        }
        // A refusal by another server is given back soon.
        let mut used = u64::MAX;
        for _ in 0..1_000 {
            used = COUNT - left(store, key.1 + 1, &name(key.0), &params(mix, key.0)).await;
            if used == admitted {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(used, admitted, "{at}: counted as often as admitted");
    }
}

/// Half of the requests are bytes in sockets that no task has read yet.
#[tokio::test]
async fn requests_of_one_turn_share_a_call_for_each_primary() {
    let cluster = Cluster::start(3, 0).await;
    let mut options = long_deadline();
    options.connections = 1;
    let store = Arc::new(cluster.open(options));
    // Then every primary is connected and has the script.
    assert!(take_many(&store, 0).await);
    let before = calls(&cluster).await;
    let (client, server) = UnixStream::pair().unwrap();
    let own = Arc::clone(&store);
    let late = tokio::spawn(async move {
        server.readable().await.unwrap();
        take_many(&own, 1).await
    });
    tokio::task::yield_now().await;
    client.try_write(b"?").unwrap();
    assert!(take_many(&store, 2).await && late.await.unwrap());
    let after = calls(&cluster).await;
    assert_eq!([0, 1, 2].map(|server| after[server] - before[server]), [1; 3]);
}

/// Takes a unit of 20 keys at once, of all primaries.
async fn take_many(store: &RedisStore, round: usize) -> bool {
    let keys: Vec<_> = (0..20).map(|n| vec![(20 * round + n, 0)]).collect();
    let takes = keys.iter().map(|keys| take(store, Mix::Singles, keys));
    join_all(takes).await.into_iter().all(|taken| taken.unwrap())
}

/// Script calls of each primary.
async fn calls(cluster: &Cluster) -> [u64; 3] {
    let calls = async |server: usize| script_calls(&cluster.servers[server], "evalsha").await;
    [calls(0).await, calls(1).await, calls(2).await]
}
