//! Reservations that several processes share.

use crate::Server;
use crate::support::long_deadline;
use std::collections::BTreeSet;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::{
    Answers, Change, Charge, ChargeMode, NewReservation, ParamsId, RedisStore, Request,
    ReservationStore, Settlement, Store, StoreCall,
};

const NOW_US: u64 = 1_700_000_000_000_000;
/// Stands for an API key: it must not be found anywhere.
const MARKER: &[u8] = b"marker-of-a-secret";

fn hundred() -> LimitParams {
    LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(100, 3_600_000_000).unwrap()))
}

fn charge(params: &LimitParams, cost: u64) -> Charge<'_> {
    let (params_id, mode) = (ParamsId::default(), ChargeMode::Enforce);
    Charge { limit: 7, key: MARKER, params, params_id, cost, mode, penalty: None }
}

async fn ask(store: &RedisStore, cost: u64, intent: Intent) -> tollgate_store::Answer {
    let (params, mut answers) = (hundred(), Answers::default());
    let charges = [charge(&params, cost)];
    let requests = [Request { charges: &charges, intent }];
    store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await.unwrap();
    answers.get(0).unwrap().1[0]
}

#[tokio::test]
async fn many_ends_from_two_nodes_are_one() {
    let server = Server::start().await;
    let stores = [(); 2].map(|()| RedisStore::open(&server.endpoint(), long_deadline()).unwrap());
    let receipt = ask(&stores[0], 60, Intent::Take).await.receipt.unwrap();
    let params = hundred();
    let places = [stores[0].state_key(&charge(&params, 1))];
    assert_eq!(
        places[0],
        stores[1].state_key(&charge(&params, 1)),
        "every node has the same names"
    );
    let opening = NewReservation {
        id: "r",
        ttl_us: 30_000_000,
        state_keys: places.to_vec(),
        note: b"note".to_vec(),
    };
    stores[0].open_reservation(NOW_US, opening).await.unwrap();
    let ends = (0..32).map(|n| {
        let store = &stores[n % 2];
        async move {
            let units = 60 - n as u64;
            let plan = move |_: &[u8]| {
                let change = Change::GiveBack { units, receipt, charged_params: params };
                Some(vec![Settlement {
                    params,
                    cost: 1,
                    mode: ChargeMode::Enforce,
                    penalty: None,
                    change,
                }])
            };
            let ended = store.end_reservation(NOW_US, "r", n as u64, plan).await.unwrap().unwrap();
            (ended.end, ended.rows[0].outcome.remaining)
        }
    });
    let mut answered = BTreeSet::new();
    let mut tasks = Vec::new();
    // Polled together, over two connections.
    for end in ends {
        tasks.push(Box::pin(end));
    }
    for answer in join(tasks).await {
        answered.insert(answer);
    }
    assert_eq!(answered.len(), 1, "one end, one answer: {answered:?}");
    let (end, remaining) = answered.pop_first().unwrap();
    assert_eq!(remaining, 40 + 60 - end, "what that end gave back and no more");
    assert_eq!(ask(&stores[1], 1, Intent::Peek).await.outcome.remaining, remaining);
}

/// All of them at once, in order.
async fn join<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    use std::pin::Pin;
    use std::task::Poll;
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(value) = Pin::new(future).poll(context)
            {
                *done = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => Poll::Ready(done.iter_mut().filter_map(Option::take).collect()),
            false => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn records_live_as_long_as_their_reservation_and_hold_nothing_secret() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    ask(&store, 5, Intent::Take).await;
    let params = hundred();
    let places = [store.state_key(&charge(&params, 1))];
    for (id, ends) in [("open", false), ("ended", true)] {
        let opening = NewReservation {
            id,
            ttl_us: 30_000_000,
            state_keys: places.to_vec(),
            note: b"note".to_vec(),
        };
        store.open_reservation(NOW_US, opening).await.unwrap();
        if ends {
            let plan = |_: &[u8]| {
                let change = Change::Owe { units: 1 };
                Some(vec![Settlement {
                    params: hundred(),
                    cost: 1,
                    mode: ChargeMode::Enforce,
                    penalty: None,
                    change,
                }])
            };
            store.end_reservation(NOW_US, id, 6, plan).await.unwrap();
        }
    }
    let mut connection = server.connect().await;
    let keys: Vec<Vec<u8>> =
        redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 3, "a limit's state and two reservations");
    for key in keys {
        assert!(key.starts_with(b"tg:{"), "{}", String::from_utf8_lossy(&key));
        let left_ms: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert!(left_ms > 0, "{} has no end", String::from_utf8_lossy(&key));
        let value: Vec<u8> =
            redis::cmd("GET").arg(&key).query_async(&mut connection).await.unwrap();
        for text in [key, value] {
            assert!(!text.windows(MARKER.len()).any(|window| window == MARKER));
        }
    }
}
