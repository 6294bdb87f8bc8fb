//! The charges of one request are all-or-nothing: as in a store, all are decided before any is
//! charged.

use crate::generate::{self, Cost, EVERYTHING, Mix, Move, Op, Step};
use crate::world::{Done, World};
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent};

const CHECKS: Mix = Mix { tiers: false, give_backs: false, debts: false, ..EVERYTHING };

proptest! {
    #![proptest_config(generate::cases(150))]

    #[test]
    fn all_are_charged_or_none(
        limits in prop::collection::vec(generate::trace(CHECKS), 2..5),
        costs in prop::collection::vec(1_u64..6, 1..40),
    ) {
        let mut together: Vec<World> = limits.iter().map(World::new).collect();
        let start_us = limits[0].start_us;
        together.iter_mut().for_each(|world| world.now_us = start_us);
        let mut alone = together.clone();
        let (mut steps, mut refused) = (limits[0].moves.iter().map(|next| next.step).cycle(), 0);
        for cost in costs {
            // The first limit's world moves the clock; the others share it.
            let step = steps.next().unwrap_or(Step::Stay);
            together[0].make(&Move { step, op: Op::Peek(Cost::Units(cost)) });
            let now_us = together[0].now_us;
            let peek = Move { step: Step::To(now_us), op: Op::Peek(Cost::Units(cost)) };
            let admits = |done| matches!(done, Done::Decided { outcome, .. } if outcome.admitted);
            let votes: Vec<bool> = together.iter_mut().map(|world| admits(world.make(&peek))).collect();
            let before: Vec<_> = together.iter().map(|world| world.state.clone()).collect();
            let admitted = request(&mut together, cost);
            prop_assert_eq!(admitted, votes.iter().all(|&vote| vote));
            refused += usize::from(!admitted);
            for ((world, alone), before) in together.iter().zip(&mut alone).zip(before) {
                alone.now_us = now_us;
                alone.params.redate(&mut alone.state, now_us);
                if admitted {
                    alone.params.charge(&mut alone.state, now_us, cost);
                } else {
                    prop_assert_eq!(&world.state, &before);
                }
                // Each limit has the state that it would have after the admitted requests alone.
                prop_assert_eq!(world.peek(1), alone.peek(1));
            }
        }
        prop_assert!(refused <= 40);
    }
}

/// One request under several limits.
fn request(worlds: &mut [World], cost: u64) -> bool {
    let admits = |world: &World| {
        world.params.decide(&world.state, world.now_us, cost, Intent::Take).admitted
    };
    let admitted = worlds.iter().all(admits);
    if admitted {
        for world in worlds {
            world.params.charge(&mut world.state, world.now_us, cost);
        }
    }
    admitted
}
