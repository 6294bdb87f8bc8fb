//! The ledger's script decides as its mirror does.

use crate::support::long_deadline;
use crate::support::server::Server;
use proptest::prelude::*;
use redis::Value;
use redis::aio::MultiplexedConnection;
use std::collections::HashMap;
use tollgate_core::algorithm::{FixedWindow, Gcra, LeakyBucket, SlidingWindow, Taken, TokenBucket};
use tollgate_core::{Algorithm, Intent, LimitParams, Rate};
use tollgate_store::lease::{BookSummary, Holder, LeaseTerms, Ledger, LedgerReply, LedgerRequest};
use tollgate_store::redis::lease_script;
use tollgate_store::{
    Answers, Charge, ChargeMode, ParamsId, RedisStore, Request, Store, StoreCall,
};

const SPARE_MS: u64 = 1_000;
const EPOCH_US: u64 = 1_700_000_000_000_000;
const SAVE: u64 = 4;
const FAIL_OVER: u64 = 8;
const OLDER_BUILD: u64 = 16;

/// One call: who, what becomes of the clock, and what is asked as if by whom.
#[derive(Clone, Debug)]
struct Step {
    holder: u64,
    by_us: i64,
    want: u64,
    need: u64,
    returned: u64,
    /// Says that it knows more than it was told, as after a rollback.
    beyond: u64,
    stale: bool,
    /// What the server forgets: nothing, everything, the state or the book. [`SAVE`] keeps a copy,
    /// as a replica does, and [`FAIL_OVER`] returns to it. An [`OLDER_BUILD`] numbers no calls.
    forget: u64,
    /// Brings the summary of the last reply to anyone.
    summary: bool,
    age_us: u64,
    /// Before the call, the store decides a request of this cost by itself; zero is none.
    direct: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let by = prop_oneof![8 => 0_i64..80_000, 2 => 0_i64..3_000_000, 1 => -5_000_000_i64..0];
    let beyond = prop_oneof![9 => Just(0_u64), 1 => 1_u64..50];
    let forget = prop_oneof![16 => Just(0_u64), 3 => 1_u64..4, 2 => Just(SAVE), 2 => Just(FAIL_OVER), 1 => Just(OLDER_BUILD)];
    let flags = (prop::bool::weighted(0.1), forget, prop::bool::weighted(0.2));
    let direct = prop_oneof![3 => Just(0_u64), 1 => 1_u64..40];
    let returns = (0_u64..30, 0_u64..600_000);
    (0_u64..4, by, 0_u64..120, 0_u64..20, returns, beyond, flags, direct).prop_map(
        |(holder, by_us, want, need, (returned, age_us), beyond, flags, direct)| Step {
            holder,
            by_us,
            want,
            need: need.min(want),
            returned,
            beyond,
            stale: flags.0,
            forget: flags.1,
            summary: flags.2,
            age_us,
            direct,
        },
    )
}

fn params() -> impl Strategy<Value = LimitParams> {
    let count = prop_oneof![Just(7_u64), Just(100), Just(1_000), Just(1_000_007)];
    let period = prop_oneof![Just(1_000_000_u64), Just(60_000_000), Just(20_000_000)];
    (0..5, count, period, 1_u64..4).prop_map(|(which, count, period_us, times)| {
        let rate = Rate::try_new(count, period_us).unwrap();
        let burst = Some(count * times);
        match which {
            0 => LimitParams::FixedWindow(FixedWindow::new(rate)),
            1 => LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            2 => LimitParams::Gcra(Gcra::try_new(rate, burst).unwrap()),
            3 => LimitParams::TokenBucket(TokenBucket::try_new(rate, burst).unwrap()),
            _ => LimitParams::LeakyBucket(LeakyBucket::try_new(rate, burst, None).unwrap()),
        }
    })
}

/// What a holder has been told, so that most of what it says makes sense.
#[derive(Clone, Copy, Default)]
struct KnownHolding {
    ledger: u64,
    granted: u64,
    returned: u64,
    summary: BookSummary,
    last_call: u64,
}

fn ask(step: &Step, told: KnownHolding, now_us: u64) -> LedgerRequest {
    let mut ask = LedgerRequest::default();
    // Two processes of two holders each.
    let process = [1, 2, u32::MAX, step.holder as u32 / 2];
    ask.holder = Holder { process, number: step.holder };
    ask.ledger = if step.stale { told.ledger.saturating_sub(1) } else { told.ledger };
    ask.known_granted = told.granted + step.beyond;
    (ask.want, ask.need) = (step.want, step.need);
    ask.returned = (told.returned + step.returned).min(ask.known_granted);
    ask.acknowledged = told.returned.min(ask.returned);
    ask.return_at_us = now_us.saturating_sub(step.age_us);
    ask.summary = told.summary;
    ask.last_call = if step.beyond > 0 { told.last_call + 1 } else { told.last_call };
    ask
}

/// Decides as the store does for keys without a lease. Returns whether it admitted.
async fn decide(store: &RedisStore, params: &LimitParams, now_us: u64, cost: u64) -> bool {
    let mode = ChargeMode::Enforce;
    let (params_id, penalty) = (ParamsId::default(), None);
    let charge = Charge { limit: 1, key: b"key", params, params_id, cost, mode, penalty };
    let request = Request { charges: &[charge], intent: Intent::Take };
    let mut answers = Answers::default();
    store.call(now_us, StoreCall::Decide(&[request]), &mut answers).await.unwrap();
    answers.get(0).unwrap().0
}

fn decide_mirrored(ledger: &mut Ledger, params: &LimitParams, now_us: u64, cost: u64) -> bool {
    let before = ledger.state.clone();
    let mut state = before.clone().unwrap_or_default();
    params.redate(&mut state, now_us);
    let admitted = matches!(params.take(&mut state, now_us, cost), Some(Taken::Charged(..)));
    if admitted || before.is_some_and(|before| before != state) {
        ledger.state = Some(state);
    }
    admitted
}

fn book_of(name: &[u8]) -> Vec<u8> {
    [name, b":l"].concat()
}

async fn dump(server: &mut MultiplexedConnection, key: &[u8]) -> Option<Vec<u8>> {
    redis::cmd("DUMP").arg(key).query_async(server).await.unwrap()
}

async fn restore(server: &mut MultiplexedConnection, key: &[u8], value: &Option<Vec<u8>>) {
    let command = match value {
        Some(value) => redis::cmd("RESTORE").arg(key).arg(0).arg(value).arg("REPLACE").clone(),
        None => redis::cmd("DEL").arg(key).clone(),
    };
    let _: Value = command.query_async(server).await.unwrap();
}

/// Cuts the record of a book to the nine numbers that builds before decision 0082 write.
async fn forget_numbers(server: &mut MultiplexedConnection, book: &[u8]) {
    let record: String = redis::cmd("HGET").arg(book).arg("m").query_async(server).await.unwrap();
    let nine: Vec<_> = record.split(':').take(9).collect();
    let mut set = redis::cmd("HSET");
    let _: Value = set.arg(book).arg("m").arg(nine.join(":")).query_async(server).await.unwrap();
}

pub(crate) async fn run_ledger(
    server: &mut MultiplexedConnection,
    name: &[u8],
    terms: &LeaseTerms,
    now_us: u64,
    ask: &LedgerRequest,
) -> LedgerReply {
    let (script, params, program) = lease_script(terms, ask);
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(2).arg(name).arg(book_of(name)).arg(now_us.to_string());
    command.arg(SPARE_MS.to_string()).arg(params).arg("").arg(program);
    match command.query_async(server).await.unwrap() {
        Value::BulkString(bytes) => tollgate_store::redis::lease_reply(&bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn compare(
    server: &mut MultiplexedConnection,
    store: &RedisStore,
    params: LimitParams,
    steps: Vec<Step>,
) {
    let Some(terms) = LeaseTerms::for_limit(&params, 400_000, 2, 1_500_000) else { return };
    let _: Value = redis::cmd("FLUSHALL").query_async(server).await.unwrap();
    // The name of the state, by which the store decides.
    decide(store, &terms.store_params, EPOCH_US, 1).await;
    let names: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query_async(server).await.unwrap();
    let [name] = &names[..] else { panic!("{names:?}") };
    let _: Value = redis::cmd("DEL").arg(name).query_async(server).await.unwrap();
    let (mut mirror, mut told, mut now_us) = (Ledger::default(), HashMap::new(), EPOCH_US);
    let mut newest = BookSummary::default();
    let mut replica = (mirror.clone(), [None, None]);
    for (place, step) in steps.iter().enumerate() {
        now_us = now_us.checked_add_signed(step.by_us).unwrap();
        if step.forget & 1 != 0 {
            let _: Value = redis::cmd("DEL").arg(name).query_async(server).await.unwrap();
            mirror.state = None;
        }
        if step.forget & 2 != 0 {
            let book = book_of(name);
            let _: Value = redis::cmd("DEL").arg(book).query_async(server).await.unwrap();
            mirror.book = None;
        }
        if step.forget == SAVE {
            replica =
                (mirror.clone(), [dump(server, name).await, dump(server, &book_of(name)).await]);
        }
        if step.forget == FAIL_OVER {
            mirror = replica.0.clone();
            restore(server, name, &replica.1[0]).await;
            restore(server, &book_of(name), &replica.1[1]).await;
        }
        if step.forget == OLDER_BUILD
            && let Some(book) = &mut mirror.book
        {
            forget_numbers(server, &book_of(name)).await;
            (book.calls, book.reported_call, book.dropped_call) = (0, 0, 0);
        }
        if step.direct > 0 {
            let decided = decide(store, &terms.store_params, now_us, step.direct).await;
            let expected = decide_mirrored(&mut mirror, &terms.store_params, now_us, step.direct);
            assert_eq!(decided, expected, "step {place}: {step:?} {mirror:?}");
        }
        let told: &mut KnownHolding = told.entry(step.holder).or_default();
        let mut ask = ask(step, *told, now_us);
        if step.summary {
            ask.summary = newest;
        }
        let expected = mirror.handle(now_us, SPARE_MS * 1_000, &terms, &ask);
        let answered = run_ledger(server, name, &terms, now_us, &ask).await;
        assert_eq!(answered, expected, "step {place}: {step:?} {ask:?} {mirror:?}");
        let (ledger, granted) = (answered.ledger, answered.granted);
        newest = answered.summary;
        let (returned, last_call) = (answered.returned, newest.calls);
        *told = KnownHolding { ledger, granted, returned, summary: newest, last_call };
        for key in [name.clone(), book_of(name)] {
            let left: i64 = redis::cmd("PTTL").arg(&key).query_async(server).await.unwrap();
            let most = expected.kept_us.div_ceil(1_000) + SPARE_MS;
            assert!(left > 0 && left as u64 <= most, "{key:?} is kept for {left} ms of {most}");
        }
    }
}

#[test]
fn the_ledgers_script_and_its_mirror_agree() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(Server::start());
    let connection = runtime.block_on(server.connect());
    let _entered = runtime.enter();
    let store = RedisStore::open(&server.endpoint(), long_deadline()).unwrap();
    let config = ProptestConfig { cases: 96, ..ProptestConfig::default() };
    proptest!(config, |(params in params(), steps in prop::collection::vec(step(), 1..40))| {
        runtime.block_on(compare(&mut connection.clone(), &store, params, steps));
    });
}

/// Runs the marker script, with these words behind its TTL.
async fn marker(server: &Server, claim: &str) -> Vec<String> {
    let mut command = redis::cmd("EVAL");
    command
        .arg(tollgate_store::lease::MARKER_LUA)
        .arg(1)
        .arg("mark")
        .arg("")
        .arg("")
        .arg("")
        .arg("");
    command.arg(format!("60000{claim}"));
    command.query_async(&mut server.connect().await).await.unwrap()
}

#[tokio::test]
async fn the_marker_of_another_server_stays_until_a_process_claims_it() {
    let server = Server::start().await;
    let own = marker(&server, "").await;
    let [run, history, _] = own[0].split(':').collect::<Vec<_>>()[..] else { panic!("{own:?}") };
    assert_eq!((run.len(), history.len(), own.len()), (40, 40, 2));
    assert_eq!(marker(&server, "").await[0], own[0]);
    // The server took another id, as the first of its replicas makes it do.
    server.run(&format!("SET mark {run}:{}:1600000000000000", "a".repeat(40))).await;
    let renamed = marker(&server, "").await;
    assert_eq!(renamed[0], format!("{run}:{history}:1600000000000000"));
    let foreign = format!("{}:{history}:1700000000000000", "b".repeat(40));
    server.run(&format!("SET mark {foreign}")).await;
    let seen = marker(&server, "").await;
    assert_eq!(seen[..3], [foreign.clone(), run.into(), history.into()]);
    assert_eq!(seen[3..], ["0".repeat(40), "-1".into()]);
    // Claims of another marker, of another run and of another history change nothing.
    for other in [
        format!(" {}1 {run} {history} 5000000", foreign),
        format!(" {foreign} {} {history} 5000000", "c".repeat(40)),
        format!(" {foreign} {run} {} 5000000", "c".repeat(40)),
    ] {
        assert_eq!(marker(&server, &other).await, seen);
    }
    let claimed = marker(&server, &format!(" {foreign} {run} {history} 5000000")).await;
    assert!(claimed[0].starts_with(&format!("{run}:{history}:")), "{claimed:?}");
    assert_eq!(claimed[1], "5000000");
    let age_us: u64 = marker(&server, "").await[1].parse().unwrap();
    assert!((5_000_000..65_000_000).contains(&age_us), "{age_us}");
}
