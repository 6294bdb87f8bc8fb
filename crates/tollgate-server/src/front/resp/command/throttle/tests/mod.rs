//! redis-cell's documented answers, at fixed instants.

mod model;

use super::*;
use model::{Literal, Model};
use proptest::prelude::*;
use tollgate::engine::{Gate, GateBuffers, GateSetup, SingleCheck, policy};
use tollgate::store::ParamsId;
use tollgate::store::Store;

/// An instant in 2023.
const START_US: u64 = 1_700_000_000_000_000;

/// A store, called like the front end calls it.
struct Cell {
    gate: Gate,
    work: GateBuffers,
}

impl Cell {
    fn new() -> Self {
        let file = policy::compile(b"").unwrap();
        let gate = Gate::new(GateSetup::of(&file), tollgate::MemoryStore::default()).unwrap();
        Self { gate, work: GateBuffers::default() }
    }

    /// The reply to a call `after_us` after the start.
    fn ask(&mut self, dialect: Dialect, after_us: u64, call: &str) -> String {
        let (mut bytes, mut arguments, mut out) = (call.to_owned(), Vec::new(), Vec::new());
        bytes.push_str("\r\n");
        let mut bytes = bytes.into_bytes();
        crate::front::resp::decode::next_command(
            &mut bytes,
            crate::front::resp::decode::Caps::AUTHENTICATED,
            &mut arguments,
        )
        .unwrap();
        let read = dialect.parse(&bytes, &arguments);
        let (key, spec, cost) = match read {
            Ok(read) => read,
            Err(bad) => return dialect.error_message(bad),
        };
        let params = match spec.limit_params() {
            Ok(params) => params,
            Err(bad) => return dialect.error_message(bad),
        };
        let params_id = match spec.count % 2 {
            0 => self.gate.store().register_params(&params),
            _ => ParamsId::default(),
        };
        let singles = [SingleCheck::Inline { key: &bytes[key], params: &params, params_id, cost }];
        let rules = self.gate.rules();
        let now_us = START_US + after_us;
        self.gate.check_batch(&rules, now_us, singles, &mut self.work).now();
        dialect.write_decision(&mut out, &self.work.verdicts()[0], &params, cost);
        let text = String::from_utf8(out).unwrap();
        text.lines().skip(1).map(|line| &line[1..]).collect::<Vec<_>>().join(" ")
    }

    fn cell(&mut self, after_us: u64, call: &str) -> String {
        self.ask(Dialect::Cell, after_us, &format!("CL.THROTTLE {call}"))
    }
}

const S: u64 = 1_000_000;

/// Rows A to F of the table, in order.
#[test]
fn the_documented_answers() {
    let mut cell = Cell::new();
    assert_eq!(cell.cell(0, "u 15 30 60"), "0 16 15 -1 2");
    assert_eq!(cell.cell(0, "f 4 1 1 6"), "1 5 5 -1 0");
    let five = ["0 5 4 -1 1", "0 5 3 -1 2", "0 5 2 -1 3", "0 5 1 -1 4", "0 5 0 -1 5"];
    for answer in five {
        assert_eq!(cell.cell(0, "f 4 1 1"), answer);
    }
    assert_eq!(cell.cell(0, "f 4 1 1"), "1 5 0 1 5");
    for (after_us, answer) in [
        (3 * S, "0 5 2 -1 3"),
        (3_100_000, "0 5 1 -1 4"),
        (4 * S, "0 5 1 -1 4"),
        (8 * S, "0 5 4 -1 1"),
        (9_500_000, "0 5 4 -1 1"),
    ] {
        assert_eq!(cell.cell(after_us, "f 4 1 1"), answer, "after {after_us}");
    }
    assert_eq!(cell.cell(9_500_000, "f 4 1 1 0"), "0 5 4 -1 1");
    assert_eq!(cell.cell(9_500_000, "f 4 1 1 2"), "0 5 2 -1 3");
    assert_eq!(cell.cell(9_500_000, "f 4 1 1 5"), "1 5 2 3 3");
}

#[test]
fn what_cannot_be_decided_is_said_in_redis_cells_words() {
    let usage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";
    let mut cell = Cell::new();
    for call in ["", "k", "k 4", "k 4 1", "k 4 1 1 1 1"] {
        assert_eq!(cell.cell(0, call), usage, "{call}");
    }
    for (call, text) in [
        ("k x 1 1", "Couldn't parse as integer: x"),
        ("k 4 1.5 1", "Couldn't parse as integer: 1.5"),
        ("k 4 1 9223372036854775808", "Couldn't parse as integer: 9223372036854775808"),
        ("k 4 1 1 ''", "Couldn't parse as integer: "),
        ("k 4 0 1", "Zero rates are not supported"),
        ("k 4 1 0", "Zero rates are not supported"),
        ("k -1 1 1", "max_burst must not be negative"),
        ("k 4 -1 1", "count must not be negative"),
        ("k 4 1 -1", "period must not be negative"),
        ("k 4 1 1 -1", "quantity must not be negative"),
        ("k 4294967295 1000 1", "max_burst is at most 4294967294"),
        ("k 4 4294967296 1", "a count, burst or queue is at most 4294967295"),
        ("k 4 1 31622401", "a period is between 1ms and 366d"),
        ("k 4 1 9223372036854775807", "period is too large"),
        ("k 4294967294 1 1", "(burst + queue) x period / count is at most 100 years"),
    ] {
        assert_eq!(cell.cell(0, call), format!("Cell error: Store error: {text}"), "{call}");
    }
    let long = "x".repeat(500);
    let text = format!("Cell error: Store error: Couldn't parse as integer: {long}");
    assert_eq!(cell.cell(0, &format!("k {long} 1 1")), text);
    // None of these calls changed anything.
    assert_eq!(cell.cell(0, "k 4 1 1"), "0 5 4 -1 1");
}

/// Deliberate differences from redis-cell's faults; docs/redis-cell.md lists them.
#[test]
fn the_deliberate_differences() {
    let mut cell = Cell::new();
    // Denied with less than a millisecond left: redis-cell replies 0.
    assert_eq!(cell.cell(0, "wait 0 1 1"), "0 1 0 -1 1");
    assert_eq!(cell.cell(999_500, "wait 0 1 1"), "1 1 0 1 0");
    // Denied with a little more than a second left: redis-cell replies 1, and denies a client that
    // returns then.
    assert_eq!(cell.cell(0, "second 0 1 2"), "0 1 0 -1 2");
    assert_eq!(cell.cell(999_500, "second 0 1 2"), "1 1 0 2 1");
    // The emission interval is not a whole microsecond: redis-cell admits more than the limit.
    assert_eq!(cell.cell(0, "third 5999 6000000 1 0"), "0 6000 6000 -1 0");
    assert_eq!(cell.cell(0, "third 5999 6000000 1"), "0 6000 5999 -1 0");
    // More than one per millisecond is enforced too.
    for left in (0..3).rev() {
        assert_eq!(cell.cell(0, "fast 2 2000 1"), format!("0 3 {left} -1 {}", u8::from(left < 2)));
    }
    assert_eq!(cell.cell(0, "fast 2 2000 1"), "1 3 0 1 1");
    assert_eq!(cell.cell(499, "fast 2 2000 1"), "1 3 0 1 1");
    assert_eq!(cell.cell(500, "fast 2 2000 1"), "0 3 0 -1 1");
}

/// The state belongs to the key, so parameters may change between calls.
#[test]
fn changed_numbers_keep_what_the_key_has_spent() {
    let mut cell = Cell::new();
    for _ in 0..5 {
        cell.cell(0, "k 4 1 1");
    }
    assert_eq!(cell.cell(0, "k 4 1 60"), "0 5 3 -1 65");
    // The key owes more than a full bucket of these parameters, so even cost 0 is limited.
    assert_eq!(cell.cell(0, "k 4 1 1 0"), "1 5 0 60 65");
    assert_eq!(cell.cell(0, "k 4 1 1"), "1 5 0 61 65");
    assert_eq!(cell.cell(60 * S, "k 4 1 1 0"), "0 5 0 -1 5");
    // An equal count with another period uses the same fraction of a microsecond.
    assert_eq!(cell.cell(0, "f 9 31622399 1 3"), "0 10 7 -1 0");
    assert_eq!(cell.cell(0, "f 9 31622399 31622399"), "0 10 8 -1 1");
}

#[test]
fn gcra_is_the_same_with_its_own_words() {
    let mut cell = Cell::new();
    let mut gcra =
        |after_us, call: &str| cell.ask(Dialect::Gcra, after_us, &format!("GCRA {call}"));
    assert_eq!(gcra(0, "k 4 1 1"), "0 5 4 -1 1");
    assert_eq!(gcra(0, "k 4 1 1 TOKENS 2"), "0 5 2 -1 3");
    assert_eq!(gcra(0, "k 4 1 1 tokens 4"), "1 5 2 2 3");
    assert_eq!(gcra(0, "half 1 1 0.5"), "0 2 1 -1 1");
    assert_eq!(gcra(0, "half 1 1 0.500000 TOKENS 1"), "0 2 0 -1 1");
    assert_eq!(gcra(0, "small 0 1 0.0015"), "0 1 0 -1 1");
    for (call, text) in [
        ("k 4 1", "ERR usage: GCRA key max_burst tokens_per_period period [TOKENS n]"),
        ("k 4 1 1 2", "ERR usage: GCRA key max_burst tokens_per_period period [TOKENS n]"),
        ("k 4 1 1 COST 2", "ERR usage: GCRA key max_burst tokens_per_period period [TOKENS n]"),
        ("k 4 1 1 TOKENS 0", "ERR TOKENS must be at least 1"),
        ("k 4 1 1 TOKENS -1", "ERR TOKENS must be at least 1"),
        ("k 4 0 1", "ERR Zero rates are not supported"),
        ("k 4 1 0.0", "ERR Zero rates are not supported"),
        ("k 4 1 0.0001", "ERR a period is between 1ms and 366d"),
        ("k x 1 1", "ERR Couldn't parse as integer: x"),
        ("k 4 1 -1", "ERR the period is in seconds with at most six decimals, not '-1'"),
        (
            "k 4 1 1.0000001",
            "ERR the period is in seconds with at most six decimals, not '1.0000001'",
        ),
        ("k 4 1 .5", "ERR the period is in seconds with at most six decimals, not '.5'"),
        ("k 4 1 5.", "ERR the period is in seconds with at most six decimals, not '5.'"),
    ] {
        assert_eq!(gcra(0, call), text, "{call}");
    }
}

/// Calls on one key, each with the time since the previous one.
fn calls(whole: bool) -> impl Strategy<Value = Vec<(u64, (i64, i64, i64), i64)>> {
    let params = match whole {
        // Divisors of a second's microseconds, so that a unit takes a whole number of them.
        true => {
            (0..6_i64, prop::sample::select(vec![1, 2, 4, 5, 8, 1000, 1_000_000]), 1..4_i64).boxed()
        }
        false => (0..50_i64, 1..5_000_i64, 1..4_000_i64).boxed(),
    };
    let after = prop_oneof![Just(0), 0..2_000_u64, 0..5_000_000_u64, 0..100_000_000_u64];
    let cost = prop_oneof![Just(1), 0..8_i64, Just(i64::MAX)];
    prop::collection::vec((after, params, cost), 1..40)
}

fn agrees(calls: Vec<(u64, (i64, i64, i64), i64)>, fixed: bool) -> Result<(), TestCaseError> {
    let (mut cell, mut model, mut after_us) = (Cell::new(), Model::default(), 0);
    let first = calls[0].1;
    for (step_us, params, cost) in calls {
        after_us += step_us;
        let (burst, count, period) = if fixed { first } else { params };
        let call = format!("k {burst} {count} {period} {cost}");
        let answer = cell.cell(after_us, &call);
        let expected = model.ask(START_US + after_us, burst, count, period, cost);
        prop_assert_eq!(answer, expected, "{} after {}", call, after_us);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_numbers_agree_with_the_model(calls in calls(false)) {
        agrees(calls, true)?;
    }

    /// If a unit takes whole milliseconds, and time passes in whole milliseconds, no deliberate
    /// difference can show.
    #[test]
    fn whole_milliseconds_agree_with_redis_cell_as_published(
        (burst, count, period) in (0..40_i64, prop::sample::select(vec![1, 2, 4, 5, 8, 20, 250, 1000]), 1..100_i64),
        calls in prop::collection::vec((0..20_000_u64, prop_oneof![Just(1), 0..60_i64]), 1..60),
    ) {
        let (mut cell, mut literal, mut after_us) = (Cell::new(), Literal::default(), 0);
        for (step_ms, cost) in calls {
            after_us += step_ms * 1_000;
            let answer = cell.cell(after_us, &format!("k {burst} {count} {period} {cost}"));
            let expected = literal.ask(START_US + after_us, burst, count, period, cost);
            prop_assert_eq!(answer, expected, "{} {} {} {} after {}", burst, count, period, cost, after_us);
        }
    }

    #[test]
    fn changing_numbers_agree_with_the_model(calls in calls(true)) {
        agrees(calls, false)?;
    }
}
