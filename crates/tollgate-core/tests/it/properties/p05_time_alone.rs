//! If only time passes, `remaining` never falls and `retry_after` never grows.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent, MAX_US};

proptest! {
    #![proptest_config(generate::cases(300))]

    #[test]
    fn waiting_only_helps(
        trace in generate::trace(EVERYTHING),
        sixteenths in prop::collection::vec(0_u64..40, 1..8),
        cost in prop_oneof![1_u64..8, any::<u64>()],
    ) {
        World::run(&trace, |world, _| {
            let mut state = world.state.clone();
            world.params.redate(&mut state, world.now_us);
            let mut now_us = world.now_us;
            let mut before = world.params.decide(&state, now_us, cost, Intent::Peek);
            let edge_us = (now_us / world.setup().period_us + 1) * world.setup().period_us;
            let waits = [1].into_iter().chain([edge_us - now_us - 1, 1, 1]);
            let shares = sixteenths.iter().map(|n| world.setup().period_us * n / 16);
            for wait_us in waits.chain(shares) {
                now_us = (now_us + wait_us).min(MAX_US);
                let after = world.params.decide(&state, now_us, cost, Intent::Peek);
                prop_assert!(after.remaining >= before.remaining);
                prop_assert!(after.admitted || !before.admitted);
                // `None` (never) is the longest wait, and stays so.
                let wait = |outcome: tollgate_core::Outcome| outcome.retry_after_us.unwrap_or(u64::MAX);
                prop_assert!(wait(after) <= wait(before));
                prop_assert_eq!(after.retry_after_us.is_none(), before.retry_after_us.is_none());
                before = after;
            }
            Ok(())
        })?;
    }
}
