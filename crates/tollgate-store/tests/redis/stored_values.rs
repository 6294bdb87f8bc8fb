//! What stands in Redis: nothing for ever, nothing secret, not much.

use crate::support::long_deadline;
use crate::support::server::Server;
use redis::aio::MultiplexedConnection;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Penalty, Rate};
use tollgate_store::conformance::algorithms;
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, ParamsId, RedisStore, Request, Store,
    StoreCall,
};

const MARKER: &str = "marker-api-key";

fn charge<'a>(key: &'a [u8], params: &'a LimitParams, penalty: Option<&'a Penalty>) -> Charge<'a> {
    let limit = 7;
    Charge {
        limit,
        key,
        params,
        params_id: ParamsId::default(),
        cost: 1,
        mode: ChargeMode::Enforce,
        penalty,
    }
}

async fn keys(connection: &mut MultiplexedConnection) -> Vec<Vec<u8>> {
    redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap()
}

#[tokio::test]
async fn every_key_ends_by_itself_and_none_shows_what_a_client_sent() {
    let server = Server::start().await;
    let mut options = long_deadline();
    options.caller_time = false;
    options.secret = b"marker-secret".to_vec();
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let penalty = Penalty::try_new(1, 1_000_000, 2_000, 60_000_000).unwrap();
    let mut answers = Answers::default();
    for params in algorithms(2) {
        for key in [MARKER, "another", "blocked"] {
            for penalty in [None, Some(&penalty)] {
                // Admitted, then refused, then punished.
                let charges = [charge(key.as_bytes(), &params, penalty)];
                let requests = [Request { charges: &charges, intent: Intent::Take }; 4];
                store.call(0, StoreCall::Decide(&requests), &mut answers).await.unwrap();
            }
        }
        let changes = [
            (MARKER, Change::Owe { units: 5 }),
            ("another", Change::Block { until_us: 9_007_199_254_740_991 }),
            ("blocked", Change::Unblock),
            ("fresh", Change::Owe { units: 1 }),
        ];
        let adjust = |(key, change): &(&'static str, Change)| Adjustment {
            charge: charge(key.as_bytes(), &params, Some(&penalty)),
            change: *change,
        };
        let adjustments: Vec<_> = changes.iter().map(adjust).collect();
        store.call(0, StoreCall::Adjust(&adjustments), &mut answers).await.unwrap();
    }
    let mut connection = server.connect().await;
    let keys = keys(&mut connection).await;
    assert_eq!(keys.len(), 7 * 4, "a key for each algorithm and client");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        let value: Vec<u8> =
            redis::cmd("GET").arg(&key).query_async(&mut connection).await.unwrap();
        let text = String::from_utf8_lossy(&[key, value].concat()).into_owned();
        assert!(left > 0, "{text} stays for ever");
        assert!(!text.contains("marker"), "{text}");
    }
}

#[tokio::test]
async fn a_key_of_gcra_takes_little_room() {
    let server = Server::start().await;
    let mut options = long_deadline();
    options.caller_time = false;
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let used = async || -> u64 {
        let info: String = redis::cmd("INFO")
            .arg("memory")
            .query_async(&mut server.connect().await)
            .await
            .unwrap();
        let line = info.lines().find(|line| line.starts_with("used_memory:")).unwrap();
        line.split(':').nth(1).unwrap().trim().parse().unwrap()
    };
    // Seven a day leaves a fraction, three a second none.
    for (count, period_us) in [(7, 86_400_000_000), (60, 86_400_000_000)] {
        let params = LimitParams::Gcra(
            Gcra::try_new(Rate::try_new(count, period_us).unwrap(), None).unwrap(),
        );
        let fill = async |from: u32, to: u32| {
            let names: Vec<_> = (from..to).map(|n| n.to_be_bytes()).collect();
            let charges: Vec<_> = names.iter().map(|name| [charge(name, &params, None)]).collect();
            let requests: Vec<_> =
                charges.iter().map(|charges| Request { charges, intent: Intent::Take }).collect();
            store.call(0, StoreCall::Decide(&requests), &mut Answers::default()).await.unwrap();
        };
        server.run("FLUSHALL").await;
        let before = used().await;
        // Just below a power of two, where the tables of keys are as full as they get.
        fill(0, 32_000).await;
        let bytes = (used().await - before) / 32_000;
        // Redis keeps some values in a longer form than others, so the mean over all of them
        // counts.
        let mut connection = server.connect().await;
        let mut usage = redis::pipe();
        for key in keys(&mut connection).await {
            usage.cmd("MEMORY").arg("USAGE").arg(key);
        }
        let sizes: Vec<u64> = usage.query_async(&mut connection).await.unwrap();
        assert_eq!(sizes.len(), 32_000, "a key for each client");
        let alone = sizes.iter().sum::<u64>() / 32_000;
        println!("{count} per {period_us} us: {alone} bytes a key, {bytes} with its expiry");
        assert!(alone <= 110, "{alone} bytes a key at {count} per {period_us} us");
    }
}
