//! Penalties in Lua against their Rust source.

use crate::plan::MAX_US;
use crate::server::Server;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::RefCell;
use tollgate_core::{Penalty, lua, penalty::PenaltyState};

const DRIVER: &str = "
local function text(n)
  return n and digits(n) or '-'
end
local params = penalty.params(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
local rows = {}
redis.call('DEL', KEYS[1])
for i = 5, #ARGV do
  local state = penalty.decode(redis.call('GET', KEYS[1]) or nil)
  local now = tonumber(ARGV[i])
  local blocked, started = penalty.blocked_until_us(params, state, now), nil
  if not blocked then
    started = penalty.count(params, state, now)
  end
  redis.call('SET', KEYS[1], penalty.encode(state))
  rows[i - 4] = table.concat({
    text(blocked), text(started), text(state.violations), text(state.blocks), text(state.mark_us),
    tostring(state.blocked), text(min(penalty.idle_at_us(params, state), MAX_US)),
  }, ' ')
end
return rows";

#[derive(Clone, Debug)]
struct PenaltyPlan {
    after: u32,
    block_us: u64,
    factor_milli: u64,
    max_us: u64,
    start_us: u64,
    hops: Vec<(u8, u64)>,
}

fn plan() -> impl Strategy<Value = PenaltyPlan> {
    let long = || (0..=52_u32, any::<u64>()).prop_map(|(bits, raw)| 1 + (raw & ((1 << bits) - 1)));
    let factor = prop_oneof![
        3 => 1_000..4_000_u64,
        1 => prop::sample::select(vec![1_000, 1_001, 2_000, 10_000]),
        1 => 1_000..=Penalty::FACTOR_MILLI_MAX,
    ];
    let start = prop_oneof![Just(0), Just(1_700_000_000_000_000), Just(MAX_US), 0..=MAX_US];
    (1..5_u32, long(), factor, long(), start, prop::collection::vec(any::<(u8, u64)>(), 1..60))
        .prop_map(|(after, block_us, factor_milli, max_us, start_us, hops)| {
            let max_us = max_us.max(block_us);
            PenaltyPlan { after, block_us, factor_milli, max_us, start_us, hops }
        })
}

#[test]
fn counts_and_blocks_as_rust_does() {
    let server = RefCell::new(Server::start());
    let script = lua::compose([lua::MULDIV, lua::PENALTY, DRIVER]);
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&plan(), |plan| {
            let (mut arguments, expected) = play(&plan);
            let params = [plan.after.into(), plan.block_us, plan.factor_milli, plan.max_us];
            arguments.splice(0..0, params.map(|number| number.to_string()));
            let rows = server.borrow_mut().eval(&script, "penalty", &arguments);
            prop_assert_eq!(rows, expected);
            Ok::<(), TestCaseError>(())
        })
        .unwrap();
}

/// The instants of the refusals, and the result of each in Rust.
fn play(plan: &PenaltyPlan) -> (Vec<String>, Vec<String>) {
    let penalty =
        Penalty::try_new(plan.after, plan.block_us, plan.factor_milli, plan.max_us).unwrap();
    let (mut state, mut now_us) = (PenaltyState::default(), plan.start_us);
    let (mut instants, mut rows) = (Vec::new(), Vec::new());
    for &(hop, raw) in &plan.hops {
        let near = |at_us: u64| at_us.saturating_add(raw % 3).saturating_sub(1);
        now_us = match hop {
            0..=119 => now_us,
            120..=179 => near(state.mark_us.max(now_us)),
            180..=209 => near(penalty.idle_at_us(&state).max(now_us)),
            210..=229 => now_us + raw % (plan.max_us + 1),
            230..=249 => now_us.saturating_sub(raw % (plan.max_us + 1)),
            250..=255 => raw % (MAX_US + 1),
        };
        now_us = now_us.min(MAX_US);
        let blocked = penalty.blocked_until_us(&state, now_us);
        let started = if blocked.is_none() { penalty.count(&mut state, now_us) } else { None };
        let text = |us: Option<u64>| us.map_or("-".to_owned(), |us| us.to_string());
        let idle_us = penalty.idle_at_us(&state).min(MAX_US);
        instants.push(now_us.to_string());
        rows.push(format!(
            "{} {} {} {} {} {} {idle_us}",
            text(blocked),
            text(started),
            state.violations,
            state.blocks,
            state.mark_us,
            state.blocked
        ));
    }
    (instants, rows)
}
