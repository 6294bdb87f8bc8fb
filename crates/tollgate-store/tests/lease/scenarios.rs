//! Loads with something to say about how well leases use a limit.

use crate::plan::{Faults, Plan};
use crate::rng::Rng;
use crate::world::World;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Numbers, Rate};
use tollgate_store::lease::Terms;

fn plan(nodes: usize, skew: u64) -> Plan {
    let numbers = Numbers::FixedWindow(FixedWindow::new(Rate::try_new(1_000, 1_000_000).unwrap()));
    Plan {
        numbers,
        terms: Terms::of(&numbers, 500_000, 100, 1_500_000).unwrap(),
        nodes,
        keys: 1,
        length_us: 8_000_000,
        between_us: 500,
        skew,
        cost_most: 1,
        phases_us: None,
        hoard: false,
        faults: Faults { delay_us: 200, ..Faults::default() },
    }
}

/// Nine of ten requests come to one of five nodes.
#[test]
fn a_skewed_load_gets_nearly_all_of_the_limit_and_never_more() {
    for seed in 0..8 {
        let mut world = World::new(plan(5, 9), Rng::new(seed), false);
        world.run().unwrap();
        let windows: Vec<_> = world.oracles[0].windows().iter().collect();
        // The first is the quiet time of a store that nobody knew, and the last was cut short.
        for (window, admitted) in &windows[3..windows.len() - 1] {
            assert!((970..=1_000).contains(*admitted), "seed {seed}, window {window}: {admitted}");
        }
        assert!(windows.len() > 6, "{windows:?}");
    }
}

/// Ten nodes that know nothing start on one key at once.
#[test]
fn a_cold_herd_shares_the_limit_with_few_calls() {
    for seed in 0..8 {
        let mut world = World::new(plan(10, 0), Rng::new(seed), false);
        world.run().unwrap();
        let most = world.oracles[0].windows().values().max().copied();
        assert!(most.is_some_and(|most| (970..=1_000).contains(&most)), "seed {seed}: {most:?}");
        assert!(world.calls * 4 < world.oracles[0].total(), "{} calls", world.calls);
    }
}
