//! `remaining = k` means that exactly k unit requests pass at that instant.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent};

/// More units than this are charged in one request; by property 7 that is the same.
const ONE_BY_ONE: u64 = 64;

proptest! {
    #![proptest_config(generate::cases(400))]

    #[test]
    fn exactly_that_many_units_pass(trace in generate::trace(EVERYTHING)) {
        World::run(&trace, |world, _| {
            if world.ends_soon() {
                return Ok(());
            }
            let (params, now_us) = (world.params, world.now_us);
            let remaining = world.peek(1).remaining;
            let mut state = world.state.clone();
            let ask = |state: &_, cost| params.decide(state, now_us, cost, Intent::Take);
            prop_assert!(ask(&state, remaining).admitted);
            prop_assert!(!ask(&state, remaining + 1).admitted);
            if remaining > ONE_BY_ONE {
                params.charge(&mut state, now_us, remaining - ONE_BY_ONE);
            }
            for left in (0..remaining.min(ONE_BY_ONE)).rev() {
                let outcome = ask(&state, 1);
                prop_assert!(outcome.admitted, "{} of {} are left", left + 1, remaining);
                prop_assert_eq!(outcome.remaining, left);
                params.charge(&mut state, now_us, 1);
            }
            prop_assert!(!ask(&state, 1).admitted, "more than {} passed", remaining);
            Ok(())
        })?;
    }
}
