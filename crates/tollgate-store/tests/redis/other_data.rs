//! A key with data that is not the limit's state fails only its own decisions.

use crate::support::server::Server;
use crate::support::{NOW_US, long_deadline};
use redis::aio::MultiplexedConnection;
use tollgate_core::{Intent, LimitParams, Penalty};
use tollgate_store::conformance::{algorithms, calendars};
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, ChargeMode, ParamsId, RedisStore, Request, Store,
    StoreCall, StoreErrorKind,
};

/// Strings that are no algorithm's state: too short, too long, no number, half a head.
const GARBAGE: [&[u8]; 9] = [
    b"garbage!",
    b"no count at all",
    b"-5",
    b"nan",
    b"\x01",
    b"\x01\x02\x03\x04\x05\x06\x07\x08",
    b"\x7f",
    b"\x7f\0\0\0\0\0\0\0\x05nonsense",
    b"a text that is longer than every state, and whose length is odd.....",
];

fn all_algorithms() -> impl Iterator<Item = LimitParams> {
    algorithms(10).chain(calendars(10).take(1))
}

fn charge<'a>(
    key: &'a [u8],
    params: &'a LimitParams,
    (mode, penalty): (ChargeMode, Option<&'a Penalty>),
) -> Charge<'a> {
    Charge { limit: 7, key, params, params_id: ParamsId::default(), cost: 1, mode, penalty }
}

async fn decide(store: &RedisStore, requests: &[&[Charge<'_>]]) -> Vec<(bool, Vec<Answer>)> {
    let intent = Intent::Take;
    let requests: Vec<_> = requests.iter().map(|charges| Request { charges, intent }).collect();
    let mut answers = Answers::default();
    store.call(NOW_US, StoreCall::Decide(&requests), &mut answers).await.unwrap();
    let rows = |at| answers.get(at).map(|(admitted, rows)| (admitted, rows.to_vec()));
    (0..).map_while(rows).collect()
}

/// Puts data under the key that the store uses, and says what stands there afterwards.
async fn spoil(
    store: &RedisStore,
    charge: &Charge<'_>,
    redis: &mut MultiplexedConnection,
    data: &[u8],
) {
    let name = store.state_key(charge);
    redis::cmd("SET").arg(name.as_bytes()).arg(data).exec_async(redis).await.unwrap();
}

#[tokio::test]
async fn strings_fail_only_their_own_decisions() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let redis = &mut server.connect().await;
    let penalty = Penalty::try_new(2, 1_000_000, 1_500, 60_000_000).unwrap();
    let owes = ChargeMode::Owe { units: 1, enforced: true };
    // Each form needs another script.
    let forms = [(ChargeMode::Enforce, None), (ChargeMode::Enforce, Some(&penalty)), (owes, None)];
    for (params, form, data) in all_algorithms()
        .flat_map(|params| forms.map(|form| (params, form)))
        .flat_map(|(params, form)| GARBAGE.map(|data| (params, form, data)))
    {
        let what = format!("{params:?} {form:?} {:?}", String::from_utf8_lossy(data));
        server.run("FLUSHALL").await;
        let [bad, good, other] = [b"bad", b"goo", b"oth"].map(|key| charge(key, &params, form));
        spoil(&store, &bad, redis, data).await;
        for (single, left) in [(true, [9, 8]), (false, [7, 6])] {
            let both = [bad, other];
            let second: &[Charge<'_>] = if single { &both[1..] } else { &both };
            let said = decide(&store, &[&[good], &[bad], second, &[good]]).await;
            assert!(said.iter().all(|(admitted, _)| *admitted), "{what}: {said:?}");
            let failed = said[1].1[0].failure();
            assert_eq!(failed, Some(StoreErrorKind::Rejected), "{what}: {said:?}");
            let left_of = |at: usize| said[at].1.last().unwrap().outcome.remaining;
            assert_eq!([left_of(0), left_of(3)], left, "{what}: {said:?}");
            assert_eq!(left_of(2), if single { 9 } else { 8 }, "{what}: {said:?}");
        }
        let changes =
            [good, bad].map(|charge| Adjustment { charge, change: Change::Owe { units: 1 } });
        let mut answers = Answers::default();
        store.call(NOW_US, StoreCall::Adjust(&changes), &mut answers).await.unwrap_err();
        assert_eq!(decide(&store, &[&[good]]).await[0].1[0].outcome.remaining, 5, "{what}");
        let name = store.state_key(&bad);
        let kept: Vec<u8> =
            redis::cmd("GET").arg(name.as_bytes()).query_async(redis).await.unwrap();
        assert_eq!(kept, data, "{what}");
    }
    assert!(!store.is_breaker_open());
}

#[tokio::test]
async fn keys_of_another_type_start_anew() {
    let server = Server::start().await;
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let redis = &mut server.connect().await;
    for params in all_algorithms() {
        let form = (ChargeMode::Enforce, None);
        let [bad, good] = [b"bad", b"goo"].map(|key| charge(key, &params, form));
        for (command, arguments) in [("LPUSH", &["x"][..]), ("HSET", &["field", "value"])] {
            server.run("FLUSHALL").await;
            let name = store.state_key(&bad);
            let mut spoil = redis::cmd(command);
            spoil.arg(name.as_bytes()).arg(arguments).exec_async(redis).await.unwrap();
            let change = Change::Owe { units: 0 };
            let changes = [Adjustment { charge: bad, change }];
            let mut answers = Answers::default();
            store.call(NOW_US, StoreCall::Adjust(&changes), &mut answers).await.unwrap();
            let said = decide(&store, &[&[good], &[bad], &[good]]).await;
            let left = said.iter().map(|(_, rows)| rows[0].outcome.remaining);
            assert_eq!(left.collect::<Vec<_>>(), [9, 9, 8], "{params:?} {command}: {said:?}");
        }
    }
}
