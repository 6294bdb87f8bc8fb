//! At the server's own time: what stands in Redis is what was answered, and it stays exactly as
//! long as it should.

use crate::connecting::RIGHTS;
use crate::lease_script::run_ledger;
use crate::support::long_deadline;
use crate::support::server::Server;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::aio::MultiplexedConnection;
use std::time::Duration;
use tollgate_core::algorithm::{FixedWindow, Gcra, LeakyBucket, SlidingWindow};
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Penalty, Rate, Receipt, lua};
use tollgate_store::conformance::algorithms;
use tollgate_store::lease::{LeaseTerms, LedgerRequest};
use tollgate_store::redis::RedisOptions;
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, NewReservation, ParamsId, RedisStore, Request,
    ReservationStore, Settlement, Store, StoreCall,
};

const SPARE: Duration = Duration::from_millis(1_500);
/// Keys end with a step of time, which is this long.
const STEP_MS: i64 = 2_000;

pub(crate) fn options() -> RedisOptions {
    let mut options = long_deadline();
    (options.caller_time, options.ttl_margin) = (false, SPARE);
    options
}

fn charge<'a>(key: &'a [u8], params: &'a LimitParams, cost: u64) -> Charge<'a> {
    let (params_id, mode, penalty) = (ParamsId::default(), ChargeMode::Enforce, None);
    Charge { limit: 7, key, params, params_id, cost, mode, penalty }
}

async fn ask<T: redis::FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &str,
    key: &[u8],
) -> T {
    redis::cmd(command).arg(key).query_async(connection).await.unwrap()
}

async fn keys(connection: &mut MultiplexedConnection) -> Vec<Vec<u8>> {
    redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap()
}

async fn server_us(connection: &mut MultiplexedConnection) -> u64 {
    let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(connection).await.unwrap();
    seconds * 1_000_000 + micros
}

/// Those whose whole state is a TAT, with and without fractions, slow and fast.
pub(crate) fn slow_and_fast() -> Vec<LimitParams> {
    let rates = [(7, 60_000_000), (1_000, 1_000_000), (60, 60_000_000), (3, 1_000)];
    let both = |(count, period_us)| {
        let rate = Rate::try_new(count, period_us).unwrap();
        let leaky = LeakyBucket::try_new(rate, Some(3), Some(9)).unwrap();
        [LimitParams::LeakyBucket(leaky), LimitParams::Gcra(Gcra::try_new(rate, Some(60)).unwrap())]
    };
    rates.into_iter().flat_map(both).collect()
}

/// The TAT and its fraction in a value.
fn kept(params: &LimitParams, value: &[u8]) -> (u64, u32) {
    match lua::decode_state(params, value) {
        Some(LimitState::Tat(state)) => (state.tat.us, state.tat.fraction),
        other => panic!("a TAT was expected, not {other:?}"),
    }
}

/// Decides batch after batch on one key, and looks after each at what stands there.
pub(crate) async fn check(
    server: &Server,
    store: &RedisStore,
    params: LimitParams,
    batches: &[(usize, u64)],
) {
    server.run("FLUSHALL").await;
    let mut connection = server.connect().await;
    let (mut last, mut answers) = (None::<Receipt>, Answers::default());
    for (times, cost) in batches {
        let charges = [charge(b"key", &params, *cost)];
        let requests = vec![Request { charges: &charges, intent: Intent::Take }; *times];
        store.call(0, StoreCall::Decide(&requests), &mut answers).await.unwrap();
        let mut receipts = (0..*times).filter_map(|place| answers.get(place).unwrap().1[0].receipt);
        last = receipts.next_back().or(last);
        let names = keys(&mut connection).await;
        let Some(receipt) = last else {
            assert_eq!(names.len(), 0, "a refusal keeps nothing");
            continue;
        };
        let value: Option<Vec<u8>> = match names.first() {
            Some(name) => ask(&mut connection, "GET", name).await,
            None => None,
        };
        let left_ms: i64 = match names.first() {
            Some(name) => ask(&mut connection, "PTTL", name).await,
            None => -2,
        };
        let now_us = server_us(&mut connection).await;
        let Some(value) = value else {
            assert!(now_us > receipt.mark_us, "it is still owed");
            last = None;
            continue;
        };
        assert_eq!(
            kept(&params, &value),
            (receipt.mark_us, receipt.mark_fraction),
            "what was answered"
        );
        let needed_ms = (receipt.mark_us as i64 - now_us as i64) / 1_000;
        let spare_ms = SPARE.as_millis() as i64;
        // It was looked at a moment before the clock was.
        assert!(left_ms >= needed_ms + spare_ms - 1, "{left_ms} ms of {needed_ms}");
        let slack_ms = ((now_us - receipt.at_us) / 1_000) as i64;
        assert!(left_ms <= needed_ms + spare_ms + STEP_MS + slack_ms + 2, "{left_ms} ms");
    }
}

#[test]
fn a_tat_is_kept_as_it_was_answered_until_it_makes_no_difference() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start());
    let guard = runtime.enter();
    let store = RedisStore::open(&server.endpoint(), options()).unwrap();
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    let batches = prop::collection::vec((1..5_usize, 1..5_u64), 1..20);
    let ran = runner.run(&(prop::sample::select(slow_and_fast()), batches), |(params, batches)| {
        runtime.block_on(check(&server, &store, params, &batches));
        Ok(())
    });
    drop((store, guard));
    ran.unwrap();
}

/// Windows, some so long that a changed length leaves a key in a window of the same number.
fn short_and_long_windows() -> Vec<LimitParams> {
    let day_us = 86_400_000_000;
    let both = |period_us| {
        let rate = Rate::try_new(1_000, period_us).unwrap();
        let fixed = LimitParams::FixedWindow(FixedWindow::new(rate));
        [fixed, LimitParams::SlidingWindow(SlidingWindow::new(rate))]
    };
    [500_000, 10_000_000, 300 * day_us, 301 * day_us].into_iter().flat_map(both).collect()
}

/// Charges a key under one limit after the other, and looks after each at how long it stays.
async fn check_windows(server: &Server, store: &RedisStore, steps: &[(LimitParams, usize, bool)]) {
    server.run("FLUSHALL").await;
    let mut connection = server.connect().await;
    let mut answers = Answers::default();
    for (params, limits, gives_back) in steps {
        let asked_us = server_us(&mut connection).await;
        let own = charge(b"key", params, 1);
        let charges = [own, Charge { limit: 8, ..own }, Charge { limit: 9, ..own }];
        let requests = [Request { charges: &charges[..*limits], intent: Intent::Take }];
        store.call(0, StoreCall::Decide(&requests), &mut answers).await.unwrap();
        let receipt = answers.get(0).unwrap().1[0].receipt.unwrap();
        if *gives_back {
            let change = Change::GiveBack { units: 1, receipt, charged_params: *params };
            let adjustments = [Adjustment { charge: own, change }];
            store.call(0, StoreCall::Adjust(&adjustments), &mut answers).await.unwrap();
        }
        let name = store.state_key(&own);
        let value: Option<Vec<u8>> = ask(&mut connection, "GET", name.as_bytes()).await;
        let left_ms: i64 = ask(&mut connection, "PTTL", name.as_bytes()).await;
        let now_us = server_us(&mut connection).await;
        let Some(value) = value else {
            assert!(now_us > receipt.at_us + 500_000, "it still counts");
            continue;
        };
        let state = lua::decode_state(params, &value).unwrap();
        let needed_ms = (params.idle_at_us(&state) as i64 - now_us as i64) / 1_000;
        let spare_ms = SPARE.as_millis() as i64;
        assert!(left_ms >= needed_ms + spare_ms - 1, "{left_ms} ms of {needed_ms}");
        let slack_ms = (now_us.saturating_sub(asked_us) / 1_000) as i64;
        let most_ms = needed_ms.max(0) + spare_ms + STEP_MS + slack_ms + 2;
        assert!(left_ms <= most_ms, "{left_ms} ms of {needed_ms}: {state:?}, {gives_back}");
    }
}

#[test]
fn a_window_is_kept_until_it_makes_no_difference() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start());
    let guard = runtime.enter();
    let store = RedisStore::open(&server.endpoint(), options()).unwrap();
    let mut runner = TestRunner::new(Config { cases: 60, ..Config::default() });
    let params = prop::sample::select(short_and_long_windows());
    let steps = prop::collection::vec((params, 1..4_usize, prop::bool::weighted(0.2)), 1..20);
    let ran = runner.run(&steps, |steps| {
        runtime.block_on(check_windows(&server, &store, &steps));
        Ok(())
    });
    drop((store, guard));
    ran.unwrap();
}

/// A node without a penalty, before a reload, writes the keys of one that has it. The penalty is
/// kept for as long as before.
#[tokio::test]
async fn a_penalty_of_another_node_keeps_its_ttl() {
    let server = Server::start().await;
    server.run(&format!("ACL SETUSER gate on nopass {RIGHTS}")).await;
    // A second's block, which is remembered for an hour.
    let penalty = Penalty::try_new(1, 1_000_000, 2_000, 3_600_000_000).unwrap();
    let mut connection = server.connect().await;
    for caller_time in [false, true] {
        let (mut options, mut answers) = (options(), Answers::default());
        options.caller_time = caller_time;
        let endpoint = server.endpoint().credentials(Some("gate".into()), None);
        let store = RedisStore::open(&endpoint, options).unwrap();
        let now_us = server_us(&mut connection).await;
        for params in algorithms(100) {
            server.run("FLUSHALL").await;
            let plain = charge(b"key", &params, 1);
            let punished = [Charge { penalty: Some(&penalty), cost: 60, ..plain }];
            let other = Charge { key: b"other", ..plain };
            let refused = [Request { charges: &punished, intent: Intent::Take }; 2];
            store.call(now_us, StoreCall::Decide(&refused), &mut answers).await.unwrap();
            let name = store.state_key(&plain);
            let before_ms: i64 = ask(&mut connection, "PTTL", name.as_bytes()).await;
            let asked_us = server_us(&mut connection).await;
            let owing = Charge { mode: ChargeMode::Owe { units: 1, enforced: true }, ..plain };
            let batches = [
                vec![plain],
                vec![plain, other],
                vec![owing],
                vec![plain, Charge { penalty: Some(&penalty), ..other }],
            ];
            for charges in batches {
                let request = [Request { charges: &charges, intent: Intent::Take }];
                store.call(now_us, StoreCall::Decide(&request), &mut answers).await.unwrap();
                assert!(answers.get(0).unwrap().0);
                stays(&mut connection, name.as_bytes(), before_ms, asked_us).await;
            }
            let adjustments = [Adjustment { charge: plain, change: Change::Owe { units: 1 } }];
            store.call(now_us, StoreCall::Adjust(&adjustments), &mut answers).await.unwrap();
            stays(&mut connection, name.as_bytes(), before_ms, asked_us).await;
            let Some(terms) = LeaseTerms::for_limit(&params, 400_000, 2, 1_500_000) else {
                continue;
            };
            let mut request = LedgerRequest::default();
            (request.want, request.need) = (1, 1);
            run_ledger(&mut connection, name.as_bytes(), &terms, now_us, &request).await;
            stays(&mut connection, name.as_bytes(), before_ms, asked_us).await;
        }
    }
}

/// Asserts that a key which had so long to live at `asked_us` has neither less nor more.
async fn stays(connection: &mut MultiplexedConnection, key: &[u8], before_ms: i64, asked_us: u64) {
    assert!(before_ms > 3_600_000, "{before_ms} ms");
    let left_ms: i64 = ask(connection, "PTTL", key).await;
    let passed_ms = (server_us(connection).await - asked_us) as i64 / 1_000;
    assert!((before_ms - passed_ms - 2..before_ms + 1).contains(&left_ms), "{left_ms} ms");
}

/// Everything that the store can write, and afterwards a look at every key there is.
#[tokio::test]
async fn no_key_stays_for_ever_or_for_much_longer_than_its_window() {
    let server = Server::start().await;
    let mut options = options();
    // However slow the machine is, nothing may end while the test looks.
    options.ttl_margin = Duration::from_secs(100);
    let spare_ms = options.ttl_margin.as_millis() as i64;
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    let penalty = Penalty::try_new(1, 1_000_000, 2_000, 30_000_000).unwrap();
    let mut answers = Answers::default();
    let mut connection = server.connect().await;
    let now_us = server_us(&mut connection).await;
    for (n, params) in algorithms(2).enumerate() {
        let params = &params;
        let plain = charge(b"plain", params, 1);
        let punished = Charge { key: b"punished", penalty: Some(&penalty), ..plain };
        let other = Charge { key: b"other", ..plain };
        for charges in [[plain, other], [punished, plain], [plain, punished]] {
            // In batches of several limits, and of one.
            let both = Request { charges: &charges, intent: Intent::Take };
            let alone = Request { charges: &charges[..1], intent: Intent::Take };
            let requests = [both, alone, alone, alone, alone];
            store.call(0, StoreCall::Decide(&requests), &mut answers).await.unwrap();
        }
        let receipt = Receipt { cost: 1, at_us: now_us, ..Receipt::default() };
        let charged_params = *params;
        let changes: [(&[u8], Change); 6] = [
            (b"plain", Change::Owe { units: 1 }),
            (b"plain", Change::GiveBack { units: 1, receipt, charged_params }),
            (b"owing", Change::Owe { units: 1 }),
            (b"blocked", Change::Block { until_us: now_us + 1_000_000 }),
            (b"punished", Change::Unblock),
            (b"nobody", Change::GiveBack { units: 1, receipt, charged_params }),
        ];
        let adjustments =
            changes.map(|(key, change)| Adjustment { charge: Charge { key, ..plain }, change });
        store.call(now_us, StoreCall::Adjust(&adjustments), &mut answers).await.unwrap();
        let (place, note) = (store.state_key(&plain), b"note".to_vec());
        for ended in [false, true] {
            let id = format!("{n} {ended}");
            let (state_keys, note) = (vec![place.clone()], note.clone());
            let opening = NewReservation { id: &id, ttl_us: 1_000_000, state_keys, note };
            store.open_reservation(0, opening).await.unwrap();
            if ended {
                let plan = |_: &[u8]| Some(vec![settlement(params, receipt)]);
                store.end_reservation(0, &id, 1, plan).await.unwrap().unwrap();
            }
        }
    }
    store.probe(false).await.unwrap();
    let names = keys(&mut connection).await;
    assert_eq!(names.len(), 7 * 7, "five keys and two reservations of each");
    for name in names {
        let left_ms: i64 = ask(&mut connection, "PTTL", &name).await;
        let value: Vec<u8> = ask(&mut connection, "GET", &name).await;
        let most_ms = match value[0] {
            // A reservation, and one that has ended.
            b'O' => 1_000,
            b'E' => (tollgate_store::END_REPEATABLE_US / 1_000) as i64,
            // A penalty is remembered for its longest time after the longest block.
            127 => 60_000,
            // Windows of ten seconds.
            _ => 20_000,
        };
        let text = String::from_utf8_lossy(&name).into_owned();
        assert!(left_ms != -1, "{text} stays for ever");
        let most_ms = most_ms + STEP_MS + spare_ms + 1;
        assert!(left_ms <= most_ms, "{text} stays for {left_ms} ms, more than {most_ms}");
    }
}

fn settlement(params: &LimitParams, receipt: Receipt) -> Settlement {
    let (cost, mode, penalty) = (1, ChargeMode::Enforce, None);
    let change = Change::GiveBack { units: 1, receipt, charged_params: *params };
    Settlement { params: *params, cost, mode, penalty, change }
}
