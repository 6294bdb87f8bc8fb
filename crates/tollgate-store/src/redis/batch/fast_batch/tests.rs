use super::*;
use crate::redis::batch::{DecideRequest, NamedCharge};
use tollgate_core::algorithm::{FixedWindow, Gcra, SlidingLog, SlidingWindow, TokenBucket};
use tollgate_core::{LimitParams, Rate};

fn rate(count: u64) -> Rate {
    Rate::try_new(count, 60_000_000).unwrap()
}

fn gcra(count: u64) -> LimitParams {
    LimitParams::Gcra(Gcra::try_new(rate(count), None).unwrap())
}

fn charge(name: &str, params: LimitParams, mode: ChargeMode) -> NamedCharge {
    NamedCharge { name: name.into(), params, cost: 1, mode, penalty: None }
}

fn request(charges: impl IntoIterator<Item = NamedCharge>) -> DecideRequest {
    DecideRequest { intent: Intent::Take, charges: charges.into_iter().collect(), fence: None }
}

fn ask(name: &str, params: LimitParams, cost: u64) -> DecideRequest {
    request([NamedCharge { cost, ..charge(name, params, ChargeMode::Enforce) }])
}

fn batch(asks: impl IntoIterator<Item = DecideRequest>) -> Batch {
    let mut batch = Batch::default();
    asks.into_iter().for_each(|ask| batch.push(ask));
    batch
}

#[test]
fn alike_requests_need_only_the_numbers() {
    let alike =
        SingleChargeBatch::of(&batch([ask("a", gcra(6), 1), ask("b", gcra(6), 1)])).unwrap();
    let [ways, way_of, many] = alike.into_arguments();
    assert_eq!((ways.len(), way_of.len(), many.len()), (56, 0, 0));
    let asks = [ask("a", gcra(6), 1), ask("b", gcra(6), 2), ask("a", gcra(6), 1)];
    let [ways, way_of, many] = SingleChargeBatch::of(&batch(asks)).unwrap().into_arguments();
    assert_eq!((ways.len(), way_of, many), (112, vec![1, 2], vec![2, 1]));
}

#[test]
fn a_caller_that_left_is_charged_nothing() {
    let mut batch = batch([ask("a", gcra(6), 1), ask("b", gcra(7), 1)]);
    batch.requests[0].cancelled = true;
    let [_, _, many] = SingleChargeBatch::of(&batch).unwrap().into_arguments();
    assert_eq!(many, [0, 1]);
}

#[test]
fn what_the_script_does_not_know_goes_another_way() {
    let log = LimitParams::SlidingLog(SlidingLog::new(Rate::try_new(1, 1_000).unwrap()));
    let other = |change: fn(&mut DecideRequest)| {
        let mut ask = ask("b", gcra(6), 1);
        change(&mut ask);
        SingleChargeBatch::of(&batch([ask]))
    };
    assert!(other(|_| {}).is_some());
    assert_eq!(other(|ask| ask.intent = Intent::Peek), None);
    assert_eq!(other(|ask| ask.charges[0].mode = ChargeMode::Shadow), None);
    assert_eq!(other(|ask| ask.charges[0].cost = 0), None);
    assert_eq!(other(|ask| ask.charges.push(ask.charges[0].clone())), None);
    assert_eq!(SingleChargeBatch::of(&batch([ask("a", log, 1)])), None);
    let twice = [ask("a", gcra(6), 1), ask("a", gcra(6), 2)];
    assert_eq!(SingleChargeBatch::of(&batch(twice)), None, "one key in two ways");
}

#[test]
fn verdicts_are_in_the_order_asked() {
    let asks = [ask("a", gcra(6), 1), ask("b", gcra(6), 1), ask("a", gcra(6), 1)];
    let values = Value::Array(vec![Value::Nil, Value::Nil]);
    let time = ["1700000000", "5"].map(|part| Value::BulkString(part.into()));
    let refused = Value::Array(vec![Value::Int(1), Value::Int(1)]);
    let all = || [&values].into_iter().chain(&time).cloned();
    let batch = batch(asks);
    let said = read_single_reply(&batch, None, Value::Array(all().collect())).unwrap();
    assert_eq!((said.now_us, said.verdicts), (1_700_000_000_000_005, b"111".to_vec()));
    let said =
        read_single_reply(&batch, Some(7), Value::Array(all().chain([refused]).collect())).unwrap();
    assert_eq!((said.now_us, said.verdicts), (7, b"110".to_vec()));
    for broken in [vec![], vec![Value::Nil; 3], vec![values.clone(), Value::Int(1)]] {
        assert!(read_single_reply(&batch, None, Value::Array(broken)).is_err());
    }
}

#[test]
fn charges_share_the_numbers_of_their_kind() {
    let slides = LimitParams::SlidingWindow(SlidingWindow::new(rate(6)));
    let fixed = LimitParams::FixedWindow(FixedWindow::new(rate(6)));
    let charges = [
        charge("a", slides, ChargeMode::Enforce),
        charge("b", fixed, ChargeMode::Shadow),
        charge("c", slides, ChargeMode::Enforce),
    ];
    let fast = FastBatch::of(&batch([request(charges)])).unwrap();
    assert!(fast.kinds.has_windows() && !fast.kinds.are_enforced());
    let [kinds, modes, program] = fast.into_arguments();
    assert_eq!((kinds.len(), modes), (112, vec![1, 0]));
    assert_eq!(program, [1, 3, 0, 1, 0, 1, 0, 2, 0, 2, 0, 3, 0, 1]);
}

#[test]
fn other_charges_need_the_general_script() {
    let bucket = LimitParams::TokenBucket(TokenBucket::try_new(rate(6), None).unwrap());
    assert_eq!(FastBatch::of(&batch([request([charge("a", bucket, ChargeMode::Enforce)])])), None);
    let fixed = LimitParams::FixedWindow(FixedWindow::new(rate(6)));
    let debt = ChargeMode::Owe { units: 1, enforced: true };
    assert_eq!(FastBatch::of(&batch([request([charge("a", fixed, debt)])])), None);
    let free = NamedCharge { cost: 0, ..charge("a", fixed, ChargeMode::Enforce) };
    assert_eq!(FastBatch::of(&batch([request([free])])), None, "it fits even in debt");
}
