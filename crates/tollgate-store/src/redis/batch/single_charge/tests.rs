use super::*;
use crate::ChargeMode;
use crate::redis::batch::{DecideRequest, NamedCharge};
use tollgate_core::algorithm::{Gcra, SlidingLog};
use tollgate_core::{LimitParams, Rate};

fn gcra(count: u64) -> LimitParams {
    LimitParams::Gcra(Gcra::try_new(Rate::try_new(count, 60_000_000).unwrap(), None).unwrap())
}

fn ask(name: &[u8], params: LimitParams, cost: u64) -> DecideRequest {
    let line =
        NamedCharge { name: name.to_vec(), params, cost, mode: ChargeMode::Enforce, penalty: None };
    DecideRequest { intent: Intent::Take, charges: smallvec::smallvec![line], fence: None }
}

fn batch(asks: impl IntoIterator<Item = DecideRequest>) -> Batch {
    let mut batch = Batch::default();
    asks.into_iter().for_each(|ask| batch.push(ask));
    batch
}

#[test]
fn alike_requests_need_only_the_numbers() {
    let alike =
        SingleChargeBatch::of(&batch([ask(b"a", gcra(6), 1), ask(b"b", gcra(6), 1)])).unwrap();
    let [ways, way_of, many] = alike.into_arguments();
    assert_eq!((ways.len(), way_of.len(), many.len()), (56, 0, 0));
    let asks = [ask(b"a", gcra(6), 1), ask(b"b", gcra(6), 2), ask(b"a", gcra(6), 1)];
    let [ways, way_of, many] = SingleChargeBatch::of(&batch(asks)).unwrap().into_arguments();
    assert_eq!((ways.len(), way_of, many), (112, vec![1, 2], vec![2, 1]));
}

#[test]
fn a_caller_that_left_is_charged_nothing() {
    let mut batch = batch([ask(b"a", gcra(6), 1), ask(b"b", gcra(7), 1)]);
    batch.requests[0].cancelled = true;
    let [_, _, many] = SingleChargeBatch::of(&batch).unwrap().into_arguments();
    assert_eq!(many, [0, 1]);
}

#[test]
fn what_the_script_does_not_know_goes_another_way() {
    let log = LimitParams::SlidingLog(SlidingLog::new(Rate::try_new(1, 1_000).unwrap()));
    let other = |change: fn(&mut DecideRequest)| {
        let mut ask = ask(b"b", gcra(6), 1);
        change(&mut ask);
        SingleChargeBatch::of(&batch([ask]))
    };
    assert!(other(|_| {}).is_some());
    assert_eq!(other(|ask| ask.intent = Intent::Peek), None);
    assert_eq!(other(|ask| ask.charges[0].mode = ChargeMode::Shadow), None);
    assert_eq!(other(|ask| ask.charges[0].cost = 0), None);
    assert_eq!(other(|ask| ask.charges.push(ask.charges[0].clone())), None);
    assert_eq!(SingleChargeBatch::of(&batch([ask(b"a", log, 1)])), None);
    let twice = [ask(b"a", gcra(6), 1), ask(b"a", gcra(6), 2)];
    assert_eq!(SingleChargeBatch::of(&batch(twice)), None, "one key in two ways");
}

#[test]
fn verdicts_are_in_the_order_asked() {
    let asks = [ask(b"a", gcra(6), 1), ask(b"b", gcra(6), 1), ask(b"a", gcra(6), 1)];
    let values = Value::Array(vec![Value::Nil, Value::Nil]);
    let time = ["1700000000", "5"].map(|part| Value::BulkString(part.into()));
    let refused = Value::Array(vec![Value::Int(1), Value::Int(1)]);
    let all = || [&values].into_iter().chain(&time).cloned();
    let batch = batch(asks);
    let said = read(&batch, None, Value::Array(all().collect())).unwrap();
    assert_eq!((said.now_us, said.verdicts), (1_700_000_000_000_005, b"111".to_vec()));
    let said = read(&batch, Some(7), Value::Array(all().chain([refused]).collect())).unwrap();
    assert_eq!((said.now_us, said.verdicts), (7, b"110".to_vec()));
    for broken in [vec![], vec![Value::Nil; 3], vec![values.clone(), Value::Int(1)]] {
        assert!(read(&batch, None, Value::Array(broken)).is_err());
    }
}
