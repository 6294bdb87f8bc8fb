//! A slot that stays half-way between two servers, for as long as a test likes: what is not here is
//! there (ASK), and what is on both sides waits (TRYAGAIN).

use super::{Cluster, until_says};
use crate::support::server::Server;
use crate::support::{NOW_US, a_day};
use futures_util::future::{join, join_all};
use tollgate_core::{Intent, LimitParams};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, NewReservation, OpenOutcome, ParamsId,
    RedisStore, Request, ReservationStore, Settlement, Store, StoreCall,
};

const CLIENT: &[u8] = b"\x06moved";

/// A limit of the one client: the same slot for all of them.
fn charge(limit: u64, params: &LimitParams) -> Charge<'_> {
    let (params_id, mode, penalty) = (ParamsId::default(), ChargeMode::Enforce, None);
    Charge { limit, key: CLIENT, params, params_id, cost: 1, mode, penalty }
}

async fn take(store: &RedisStore, limits: &[u64], params: &LimitParams) -> bool {
    let charges: Vec<_> = limits.iter().map(|limit| charge(*limit, params)).collect();
    let mut answers = Answers::default();
    let requests = [Request { charges: &charges, intent: Intent::Take }];
    store
        .call(NOW_US, StoreCall::Decide(&requests), &mut answers)
        .await
        .expect("no caller sees it");
    answers.get(0).unwrap().0
}

async fn adjust(store: &RedisStore, limit: u64, params: &LimitParams, change: Change) -> u64 {
    let mut answers = Answers::default();
    let adjustments = [Adjustment { charge: charge(limit, params), change }];
    store
        .call(NOW_US, StoreCall::Adjust(&adjustments), &mut answers)
        .await
        .expect("no caller sees it");
    answers.get(0).unwrap().1[0].outcome.remaining
}

fn name(store: &RedisStore, limit: u64, params: &LimitParams) -> String {
    String::from_utf8(store.state_key(&charge(limit, params)).as_bytes().to_vec()).unwrap()
}

/// A slot between two servers.
pub(crate) struct Move<'a> {
    slot: i64,
    from: &'a Server,
    to: &'a Server,
    ids: [String; 2],
}

impl<'a> Move<'a> {
    /// Begins to move the slot of `key`, which exists.
    pub(crate) async fn begin(cluster: &'a Cluster, key: &str) -> Move<'a> {
        let slot = cluster.servers[0].run(&format!("CLUSTER KEYSLOT {key}")).await;
        let redis::Value::Int(slot) = slot else { panic!("{slot:?}") };
        let mut own = 0;
        while !cluster.servers[own].has(key).await {
            own += 1;
        }
        let other = (own + 1) % 3;
        let ids = [cluster.id(own).await, cluster.id(other).await];
        let (from, to) = (&cluster.servers[own], &cluster.servers[other]);
        to.run(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[0])).await;
        from.run(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[1])).await;
        Move { slot, from, to, ids }
    }

    /// Takes one key across.
    pub(crate) async fn carry(&self, key: &str) {
        assert!(self.from.has(key).await, "{key} is still where it was");
        self.from.run(&format!("MIGRATE 127.0.0.1 {} {key} 0 10000", self.to.port)).await;
    }

    /// Ends it, as the servers themselves do.
    pub(crate) async fn end(&self, cluster: &Cluster) {
        let done = format!("CLUSTER SETSLOT {} NODE {}", self.slot, self.ids[1]);
        self.to.run(&done).await;
        self.from.run(&done).await;
        for server in &cluster.servers[..3] {
            server.run(&done).await;
        }
    }
}

/// Decisions, changes and resets in a slot that is half-way, and what waits for it to arrive.
pub(crate) async fn slots_that_are_half_way(cluster: &Cluster, store: &RedisStore) {
    let params = a_day(40);
    assert!(take(store, &[1], &params).await);
    assert!(take(store, &[2], &params).await);
    let moving = Move::begin(cluster, &name(store, 1, &params)).await;
    moving.carry(&name(store, 2, &params)).await;
    // 1 is here, 2 is there, and 3 comes into being there. Together they share calls, which have to
    // be taken apart.
    let asks = (0..30).map(|n| take(store, std::slice::from_ref(&[1, 2, 3][n % 3]), &params));
    assert!(join_all(asks).await.into_iter().all(|admitted| admitted));
    let nothing = Change::Owe { units: 0 };
    for (limit, left) in [(1, 29), (2, 29), (3, 30)] {
        assert_eq!(adjust(store, limit, &params, nothing).await, left, "limit {limit}");
        assert_eq!(adjust(store, limit, &params, Change::Owe { units: 4 }).await, left - 4);
    }
    for limit in [1, 2, 3] {
        store
            .call(0, StoreCall::Reset { limit, key: CLIENT }, &mut Answers::default())
            .await
            .expect("no caller sees it");
        assert_eq!(adjust(store, limit, &params, nothing).await, 40, "limit {limit} was reset");
    }
    waits_for_the_rest(cluster, store, &params, &moving).await;
}

/// One request, a key of it here and one there.
async fn waits_for_the_rest(
    cluster: &Cluster,
    store: &RedisStore,
    params: &LimitParams,
    moving: &Move<'_>,
) {
    let few = a_day(4);
    // What is left of the slot here: a key that was written before the slot began to move.
    let seen = format!("{:?}", moving.from.run("INFO errorstats").await);
    assert!(seen.contains("errorstat_ASK"), "{seen}");
    moving.from.run(&format!("CLUSTER SETSLOT {} STABLE", moving.slot)).await;
    assert!(take(store, &[4], &few).await);
    moving.from.run(&format!("CLUSTER SETSLOT {} MIGRATING {}", moving.slot, moving.ids[1])).await;
    assert!(take(store, &[5], &few).await);
    moving.from.run("CONFIG RESETSTAT").await;
    let arrive = async {
        until_says(moving.from, "INFO errorstats", "errorstat_TRYAGAIN").await;
        // A reset left its instant under the name of limit 1.
        for (limit, params) in [(1, params), (4, &few)] {
            moving.carry(&name(store, limit, params)).await;
        }
        moving.end(cluster).await;
    };
    let (admitted, ()) = join(take(store, &[4, 5], &few), arrive).await;
    assert!(admitted);
    let nothing = Change::Owe { units: 0 };
    for limit in [4, 5] {
        assert_eq!(adjust(store, limit, &few, nothing).await, 2, "counted once");
    }
    assert_eq!(adjust(store, 1, params, nothing).await, 40, "and whoever comes later follows");
}

/// A reservation whose record has gone ahead of its slot.
pub(crate) async fn reservations_that_are_half_way(cluster: &Cluster, store: &RedisStore) {
    let params = a_day(10);
    let places = [store.state_key(&charge(9, &params))];
    let open = async |id: &str| {
        let opening = NewReservation {
            id,
            ttl_us: 60_000_000,
            state_keys: places.to_vec(),
            note: b"note".to_vec(),
        };
        store.open_reservation(NOW_US, opening).await.expect("no caller sees it")
    };
    cluster.flush().await;
    assert_eq!(open("one").await, OpenOutcome::Opened);
    let record = cluster.only_key().await;
    let moving = Move::begin(cluster, &record).await;
    moving.carry(&record).await;
    assert_eq!(open("one").await, OpenOutcome::IdInUse, "it is found there");
    let plan = |_: &[u8]| {
        let (cost, mode, penalty) = (1, ChargeMode::Enforce, None);
        let change = Change::Owe { units: 3 };
        Some(vec![Settlement { params, cost, mode, penalty, change }])
    };
    for end in [3, 4] {
        let ended = store.end_reservation(NOW_US, "one", end, plan).await;
        let ended = ended.expect("no caller sees it").expect("it is there");
        assert_eq!(ended.end, 3, "the first end counts");
        assert_eq!(ended.rows[0].outcome.remaining, 7);
    }
    moving.end(cluster).await;
    let left = adjust(store, 9, &params, Change::Owe { units: 0 }).await;
    assert_eq!(left, 7, "settled once");
}
