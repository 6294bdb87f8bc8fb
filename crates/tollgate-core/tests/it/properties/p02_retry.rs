//! `retry_after` is exact if only time passes: one microsecond earlier the cost is refused, then it
//! is admitted.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent, MAX_US};

proptest! {
    #![proptest_config(generate::cases(400))]

    #[test]
    fn refused_until_then_and_admitted_then(trace in generate::trace(EVERYTHING)) {
        World::run(&trace, |world, _| {
            let mut state = world.state.clone();
            world.params.redate(&mut state, world.now_us);
            let capacity = world.params.capacity();
            let remaining = world.peek(1).remaining;
            for cost in [1, 2, capacity / 2, remaining + 1, capacity, capacity + 1, u64::MAX] {
                let at = |us| world.params.decide(&state, us, cost, Intent::Take);
                let outcome = at(world.now_us);
                match outcome.retry_after_us {
                    Some(0) => prop_assert!(outcome.admitted),
                    Some(wait_us) if world.now_us + wait_us <= MAX_US => {
                        prop_assert!(!outcome.admitted);
                        let then_us = world.now_us + wait_us;
                        prop_assert!(at(then_us).admitted, "{} not yet at {}", cost, then_us);
                        prop_assert!(!at(then_us - 1).admitted, "{} sooner than {}", cost, then_us);
                    }
                    Some(_) => prop_assert!(!outcome.admitted),
                    None => prop_assert!(!outcome.admitted && cost > capacity),
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn more_comes_when_it_is_said_to(trace in generate::trace(EVERYTHING)) {
        World::run(&trace, |world, _| {
            let mut state = world.state.clone();
            world.params.redate(&mut state, world.now_us);
            let remaining = |us| world.params.decide(&state, us, 1, Intent::Peek).remaining;
            let now = world.params.decide(&state, world.now_us, 1, Intent::Peek);
            if let Some(wait_us) = now.more_after_us && world.now_us + wait_us <= MAX_US {
                prop_assert!(wait_us > 0);
                prop_assert!(remaining(world.now_us + wait_us) > now.remaining);
                prop_assert_eq!(remaining(world.now_us + wait_us - 1), now.remaining);
            }
            Ok(())
        })?;
    }
}
