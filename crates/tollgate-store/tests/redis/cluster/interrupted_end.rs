//! Reservations whose end reaches only a part of a cluster, and is repeated.

use super::{Cluster, left};
use crate::support::{NOW_US, long_deadline, short_deadline, until_healed};
use futures_util::future::join_all;
use redis::Value;
use tollgate_core::{Intent, LimitParams, Receipt};
use tollgate_store::conformance::algorithms;
use tollgate_store::{
    Answers, Change, Charge, ChargeMode, NewReservation, OpenOutcome, ParamsId, RedisStore,
    Request, ReservationStore, Settlement, Store, StoreCall,
};

const CAPACITY: u64 = 10;
/// The limits of the reservations; each has the key of its reservation and algorithm.
const LIMIT: u64 = 11;

/// A reservation of `taken` units in each of several slots.
struct Reserved {
    id: String,
    keys: Vec<(Vec<u8>, LimitParams)>,
    receipts: Vec<Receipt>,
}

/// Every algorithm whose units can be given back and owed at once.
fn limits() -> Vec<LimitParams> {
    algorithms(CAPACITY).filter(|one| !matches!(one, LimitParams::LeakyBucket(_))).collect()
}

fn charge<'a>(key: &'a [u8], params: &'a LimitParams, cost: u64) -> Charge<'a> {
    let (params_id, mode) = (ParamsId::default(), ChargeMode::Enforce);
    Charge { limit: LIMIT, key, params, params_id, cost, mode, penalty: None }
}

async fn reserve(store: &RedisStore, id: String, taken: u64) -> Reserved {
    let keys = limits().into_iter().map(|params| {
        let key = format!("{id} {}", params.algorithm()).into_bytes();
        (key, params)
    });
    let keys: Vec<_> = keys.collect();
    let charges: Vec<_> = keys.iter().map(|(key, params)| charge(key, params, taken)).collect();
    let mut answers = Answers::default();
    let requests = [Request { charges: &charges, intent: Intent::Take }];
    store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await.unwrap();
    let (admitted, rows) = answers.get(0).unwrap();
    assert!(admitted);
    let receipts = rows.iter().map(|row| row.receipt.unwrap()).collect();
    let state_keys = charges.iter().map(|charge| store.state_key(charge)).collect();
    let note = b"note".to_vec();
    let opening = NewReservation { id: &id, ttl_us: 60_000_000, state_keys, note };
    assert_eq!(store.open_reservation(NOW_US, opening).await.unwrap(), OpenOutcome::Opened);
    Reserved { id, keys, receipts }
}

impl Reserved {
    /// Settles the reservation of `taken` units for `cost`. Returns whether the store answered.
    async fn end(&self, store: &RedisStore, now_us: u64, taken: u64, cost: u64) -> bool {
        let plan = |_: &[u8]| {
            let limits = self.keys.iter().zip(&self.receipts);
            let settlement = |((_, params), receipt): (&(_, LimitParams), &Receipt)| {
                let (params, receipt) = (*params, *receipt);
                let change = match cost.checked_sub(taken) {
                    Some(units) => Change::Owe { units },
                    None => {
                        let (units, charged_params) = (taken - cost, params);
                        Change::GiveBack { units, receipt, charged_params }
                    }
                };
                let (cost, mode, penalty) = (1, ChargeMode::Enforce, None);
                Settlement { params, cost, mode, penalty, change }
            };
            Some(limits.map(settlement).collect())
        };
        match store.end_reservation(now_us, &self.id, cost, plan).await {
            Ok(ended) => {
                let ended = ended.expect("the reservation is there");
                assert_eq!(ended.end, cost);
                for row in &ended.rows {
                    assert_eq!(row.outcome.remaining, CAPACITY - cost, "the answer");
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Asserts that each limit counts `cost` units.
    async fn counts(&self, store: &RedisStore, cost: u64) {
        for (key, params) in &self.keys {
            let left = left(store, LIMIT, key, params).await;
            assert_eq!(left, CAPACITY - cost, "{} {}", self.id, params.algorithm());
        }
    }
}

/// A primary stops, both calls of each end fail or succeed, and the primary goes on: it executes
/// the calls that it has received. The next call ends the reservation in every slot, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_failed_halfway_is_completed_once() {
    let cluster = Cluster::start(3, 0).await;
    let (store, calm) = (cluster.open(short_deadline()), cluster.open(long_deadline()));
    for (round, (taken, cost)) in [(4, 0), (1, 5), (6, 2)].into_iter().enumerate() {
        let open = (0..12).map(|n| reserve(&calm, format!("{round} {n}"), taken));
        let reserved = join_all(open).await;
        let stopped = &cluster.servers[round];
        stopped.run("CLIENT PAUSE 600000 WRITE").await;
        let mut failed = 0;
        for one in &reserved {
            for _ in 0..2 {
                failed += usize::from(!one.end(&store, NOW_US, taken, cost).await);
            }
        }
        assert!(failed > 0, "a primary was stopped");
        stopped.run("CLIENT UNPAUSE").await;
        until_healed(&store, b"healed").await;
        for one in &reserved {
            assert!(one.end(&calm, NOW_US, taken, cost).await, "{}", one.id);
            assert!(one.end(&calm, NOW_US, taken, cost).await, "{}: repeated", one.id);
        }
        for one in &reserved {
            one.counts(&calm, cost).await;
        }
    }
}

/// The primary of the record fails before its replica has the end. Other primaries have applied it
/// by then. The open record is ended again, later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_its_record_lost_is_applied_once() {
    let cluster = Cluster::start(3, 0).await;
    let store = cluster.open(long_deadline());
    for (round, (taken, cost)) in [(4, 0), (1, 5), (6, 2)].into_iter().enumerate() {
        let one = reserve(&store, round.to_string(), taken).await;
        let records = open_records(&cluster).await;
        assert_eq!(records.len(), 1);
        for n in 0..3 {
            for (server, name, record) in &records {
                let mut connection = cluster.servers[*server].connect().await;
                let mut set = redis::cmd("SET");
                let set = set.arg(name).arg(record).arg("PX").arg(600_000);
                let _: Value = set.query_async(&mut connection).await.unwrap();
            }
            assert!(one.end(&store, NOW_US + n, taken, cost).await);
            one.counts(&store, cost).await;
        }
        assert_eq!(open_records(&cluster).await.len(), 0);
    }
}

/// The server, the key and the value of each open record.
async fn open_records(cluster: &Cluster) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    for (n, server) in cluster.servers.iter().enumerate() {
        let mut connection = server.connect().await;
        let names: Vec<Vec<u8>> =
            redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        for name in names {
            let value: Vec<u8> =
                redis::cmd("GET").arg(&name).query_async(&mut connection).await.unwrap();
            if value.first() == Some(&b'O') {
                records.push((n, name, value));
            }
        }
    }
    records
}
