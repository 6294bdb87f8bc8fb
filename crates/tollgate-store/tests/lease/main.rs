//! Leases, simulated: many nodes, a network and a store under one virtual clock, running the
//! protocol that ships.

mod late;
mod loss;
mod lost_calls;
mod node;
mod oracle;
mod picture;
mod plan;
mod rng;
mod scale;
mod scenarios;
mod slow_clock;
mod store;
mod takeover;
mod world;

use plan::Plan;
use rng::Rng;
use std::env;
use world::World;

/// Seeds in an ordinary run of the tests.
const SEEDS: u64 = 10_000;

fn main_of(seed: u64, trace: bool) -> World {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    if trace {
        println!("{plan:#?}");
    }
    World::new(plan, rng, trace)
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("a seed is a whole number"))
}

/// `cargo xtask simulate` says how many seeds, from which on, or which one.
#[test]
fn no_seed_admits_more_than_it_may() {
    if let Some(seed) = number("TOLLGATE_SEED") {
        let outcome = main_of(seed, true).run();
        assert_eq!(outcome, Ok(()), "seed {seed}");
        return;
    }
    let (mut steps, mut rollbacks, mut decided) = (0, 0, 0);
    let mut failed = Vec::new();
    let first = number("TOLLGATE_FIRST_SEED").unwrap_or(0);
    for seed in first..first + number("TOLLGATE_SEEDS").unwrap_or(SEEDS) {
        let mut world = main_of(seed, false);
        if let Err(why) = world.run() {
            println!("seed {seed} {why}");
            failed.push(seed);
        }
        steps += world.steps;
        rollbacks += world.rollbacks;
        decided += world.decided;
    }
    println!("{steps} steps, {rollbacks} rollbacks, {decided} units decided by the store");
    let again = failed.first().map(|seed| format!("cargo xtask simulate --seed {seed}"));
    assert_eq!(again, None, "{} seeds fail: {failed:?}", failed.len());
}
