//! The memory store and the Redis store decide alike, at the ends of the range too.

use crate::support::long_deadline;
use crate::support::server::Server;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use tollgate_core::algorithm::{
    CalendarWindow, Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow,
    TokenBucket,
};
use tollgate_core::{CalendarUnit, Intent, LimitParams, MAX_US, Penalty, Rate, Receipt, Zone};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, MemoryStore, ParamsId, RedisStore, Request,
    Store, StoreCall,
};

const YEAR_US: u64 = 366 * 86_400_000_000;
/// The vectors of the design, and what lies between.
const RATES: [(u64, u64); 9] = [
    (7, 60_000_000),
    (1_000_000, 86_400_000_000),
    (1_000_007, 1_000_000),
    (3, 1_000),
    (4_294_967_295, YEAR_US),
    (4_294_967_295, 1_000),
    (1, YEAR_US),
    (0, 1_000_000),
    (5, 1_000_000),
];

#[derive(Clone, Debug)]
struct TraceStep {
    forward_us: i64,
    key: u8,
    cost: u64,
    /// How often it is asked in one batch.
    times: usize,
    /// Whether the limit has its penalty: a reload, or another node, may have none.
    punishes: bool,
    what: StepKind,
}

#[derive(Clone, Debug)]
enum StepKind {
    Ask(Intent, ChargeMode),
    Owe,
    GiveBack,
    Block(u64),
    Unblock,
    Reset,
}

fn costs() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(1_u64),
        2 => 0..10_u64,
        1 => 0..5_000_000_000_u64,
        1 => prop_oneof![Just(4_294_967_295), Just(4_294_967_294), Just(MAX_US), Just(u64::MAX)],
    ]
}

fn steps() -> impl Strategy<Value = Vec<TraceStep>> {
    let forward = prop_oneof![
        4 => 0..2_000_000_i64,
        2 => Just(0_i64),
        1 => 0..i64::try_from(YEAR_US).unwrap(),
        1 => -100_000_000..0_i64,
    ];
    let what = prop_oneof![
        8 => Just(StepKind::Ask(Intent::Take, ChargeMode::Enforce)),
        1 => Just(StepKind::Ask(Intent::Take, ChargeMode::Shadow)),
        1 => Just(StepKind::Ask(Intent::Peek, ChargeMode::Enforce)),
        2 => (costs(), any::<bool>())
            .prop_map(|(units, enforced)| ChargeMode::Owe { units: units.min(4_294_967_295), enforced })
            .prop_map(|mode| StepKind::Ask(Intent::Take, mode)),
        1 => Just(StepKind::Owe),
        2 => Just(StepKind::GiveBack),
        1 => (0..10_000_000_u64).prop_map(StepKind::Block),
        1 => Just(StepKind::Unblock),
        1 => Just(StepKind::Reset),
    ];
    let times = prop_oneof![3 => Just(1), 1 => 2..5_usize];
    let step = (forward, 0..2_u8, costs(), times, prop::bool::weighted(0.7), what);
    let step = step.prop_map(|(forward_us, key, cost, times, punishes, what)| TraceStep {
        forward_us,
        key,
        cost,
        times,
        punishes,
        what,
    });
    prop::collection::vec(step, 1..40)
}

fn params() -> impl Strategy<Value = LimitParams> {
    (0..RATES.len(), 0..8_usize).prop_filter_map("not every rate is one", |(rate, algorithm)| {
        let (count, period_us) = RATES[rate];
        let rate = Rate::try_new(count, period_us).ok()?;
        Some(match algorithm {
            0 => LimitParams::FixedWindow(FixedWindow::new(rate)),
            1 => LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            2 => LimitParams::SlidingLog(SlidingLog::new(rate)),
            3 => LimitParams::TokenBucket(TokenBucket::try_new(rate, None).ok()?),
            4 => LimitParams::Gcra(Gcra::try_new(rate, Some(count.max(3))).ok()?),
            5 => LimitParams::LeakyBucket(LeakyBucket::try_new(rate, Some(2), Some(3)).ok()?),
            6 => LimitParams::Concurrency(Concurrency::try_new(count, period_us).ok()?),
            _ => {
                let units = [CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month];
                let unit = units[period_us as usize % 3];
                LimitParams::CalendarWindow(CalendarWindow::new(rate.count(), unit, Zone::UTC))
            }
        })
    })
}

/// What a store says to each step, with everything that it says.
async fn answers(store: &impl Store, trace: &Trace) -> Vec<String> {
    let (mut now_us, mut said, mut taken) =
        (trace.start_us, Vec::new(), Vec::<(u8, Receipt)>::new());
    for step in &trace.steps {
        now_us = now_us.saturating_add_signed(step.forward_us).min(MAX_US);
        let key = [1, step.key];
        let charge = |mode| Charge {
            limit: trace.limit,
            key: &key,
            params: &trace.params,
            params_id: ParamsId::default(),
            cost: step.cost,
            mode,
            penalty: trace.penalty.as_ref().filter(|_| step.punishes),
        };
        let mut answers = Answers::default();
        let change = match step.what {
            StepKind::Ask(intent, mode) => {
                let charges = [charge(mode)];
                let requests = vec![Request { charges: &charges, intent }; step.times];
                store.call(now_us, StoreCall::Decide(&requests), &mut answers).await.unwrap();
                let rows = (0..step.times).map(|place| answers.get(place).unwrap().1[0]);
                taken.extend(rows.filter_map(|row| Some((step.key, row.receipt?))));
                None
            }
            StepKind::Owe => Some(Change::Owe { units: step.cost.min(4_294_967_295) }),
            StepKind::GiveBack => match taken.iter().position(|(key, _)| *key == step.key) {
                Some(place) => {
                    let receipt = taken.remove(place).1;
                    let units = step.cost.min(receipt.cost);
                    Some(Change::GiveBack { units, receipt, charged_params: trace.params })
                }
                None => continue,
            },
            StepKind::Block(us) => Some(Change::Block { until_us: (now_us + us).min(MAX_US) }),
            StepKind::Unblock => Some(Change::Unblock),
            StepKind::Reset => {
                store
                    .call(
                        now_us,
                        StoreCall::Reset { limit: trace.limit, key: &key },
                        &mut Answers::default(),
                    )
                    .await
                    .unwrap();
                continue;
            }
        };
        if let Some(change) = change {
            let adjustments = [Adjustment { charge: charge(ChargeMode::Enforce), change }];
            store.call(now_us, StoreCall::Adjust(&adjustments), &mut answers).await.unwrap();
        }
        let all = (0..).map_while(|place| answers.get(place));
        said.push(format!("{:?}", all.collect::<Vec<_>>()));
    }
    said
}

#[derive(Clone, Debug)]
struct Trace {
    limit: u64,
    start_us: u64,
    params: LimitParams,
    penalty: Option<Penalty>,
    steps: Vec<TraceStep>,
}

fn traces() -> impl Strategy<Value = Trace> {
    let start = prop_oneof![
        4 => Just(1_700_000_000_000_000_u64),
        1 => Just(0_u64),
        1 => Just(MAX_US - 50_000_000),
    ];
    let penalty = prop_oneof![
        2 => Just(None),
        1 => Just(Penalty::try_new(2, 1_000_000, 1_500, 60_000_000).ok()),
    ];
    (any::<u64>(), start, params(), penalty, steps()).prop_map(
        |(limit, start_us, params, penalty, steps)| Trace {
            limit,
            start_us,
            params,
            penalty,
            steps,
        },
    )
}

/// The same for traces picked at random, on servers that `flush` empties.
pub(crate) async fn sampled(redis: &RedisStore, cases: usize, flush: impl AsyncFn()) {
    let mut runner = TestRunner::default();
    for _ in 0..cases {
        let trace = traces().new_tree(&mut runner).unwrap().current();
        flush().await;
        let expected = answers(&MemoryStore::default(), &trace).await;
        let said = answers(redis, &trace).await;
        assert_eq!(expected, said, "{trace:?}");
    }
}

#[test]
fn memory_and_redis_decide_alike() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start());
    let guard = runtime.enter();
    let redis = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let mut runner = TestRunner::new(Config { cases: 400, ..Config::default() });
    let ran = runner.run(&traces(), |trace| {
        let memory = MemoryStore::default();
        runtime.block_on(server.run("FLUSHALL"));
        let (expected, said) = runtime
            .block_on(async { (answers(&memory, &trace).await, answers(&redis, &trace).await) });
        for (n, (expected, said)) in expected.iter().zip(&said).enumerate() {
            prop_assert_eq!(expected, said, "answer {}", n);
        }
        Ok(())
    });
    drop(redis);
    drop(guard);
    ran.unwrap();
}

/// A block that starts at the last instant there is ends there as well, and is shown all the same.
#[tokio::test]
async fn a_block_at_the_end_of_time_is_shown() {
    let server = Server::start().await;
    let redis = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let step = |forward_us, cost, times, mode| TraceStep {
        forward_us,
        key: 0,
        cost,
        times,
        punishes: true,
        what: StepKind::Ask(Intent::Take, mode),
    };
    let owe = ChargeMode::Owe { units: 1, enforced: true };
    let trace = Trace {
        limit: 0,
        start_us: MAX_US - 50_000_000,
        params: LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(7, 60_000_000).unwrap())),
        penalty: Penalty::try_new(2, 1_000_000, 1_500, 60_000_000).ok(),
        steps: vec![step(50_000_000, 1, 1, ChargeMode::Enforce), step(0, 5, 4, owe)],
    };
    let said = answers(&redis, &trace).await;
    assert_eq!(said, answers(&MemoryStore::default(), &trace).await);
    assert!(said[1].contains("blocked: true"), "{said:?}");
}
