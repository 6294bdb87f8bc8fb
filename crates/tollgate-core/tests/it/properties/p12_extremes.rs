//! Limit 0, cost 0, costs above the limit, times near the end: no overflow and no panic. Tests have
//! overflow checks, so each run tests that. `judged` compares the same traces with the oracle.

use crate::generate;
use crate::setup::KINDS;
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent, LimitState, MAX_US};

proptest! {
    #![proptest_config(generate::cases(400))]

    #[test]
    fn nothing_wraps_at_the_ends(trace in generate::kind().prop_flat_map(generate::extreme)) {
        World::run(&trace, |world, _| {
            let capacity = world.params.capacity();
            for cost in [0, 1, capacity, capacity + 1, u64::from(u32::MAX), MAX_US, u64::MAX] {
                for intent in [Intent::Peek, Intent::Take] {
                    let outcome = world.params.decide(&world.state, world.now_us, cost, intent);
                    prop_assert_eq!(outcome.limit, capacity);
                    prop_assert!(outcome.remaining <= capacity);
                    prop_assert!(outcome.reset_after_us <= 2 * MAX_US);
                    prop_assert!(outcome.retry_after_us.unwrap_or(0) <= 2 * MAX_US);
                    prop_assert_eq!(outcome.admitted, outcome.retry_after_us == Some(0));
                    prop_assert!(outcome.admitted || cost > 0, "nothing is always admitted");
                    prop_assert!(!outcome.admitted || cost <= capacity);
                    prop_assert_eq!(outcome.retry_after_us.is_none(), cost > capacity);
                }
                let mut state = world.state.clone();
                let receipt = world.params.charge(&mut state, world.now_us, cost);
                world.params.give_back(&mut state, world.now_us, cost, &receipt);
                world.params.give_back(&mut state, u64::MAX, u64::MAX, &receipt);
                world.params.give_back(&mut state, 0, u64::MAX, &receipt);
                prop_assert!(world.params.idle_at_us(&state) <= 2 * MAX_US);
            }
            Ok(())
        })?;
    }

    /// A charge of zero units changes nothing, and every instant after the end of time is the end
    /// of time.
    #[test]
    fn nothing_is_nothing_and_the_end_is_the_end(
        trace in generate::kind().prop_flat_map(generate::extreme),
        beyond_us in MAX_US..=u64::MAX,
    ) {
        World::run(&trace, |world, _| {
            let mut state = world.state.clone();
            if state != LimitState::default() {
                world.params.charge(&mut state, world.now_us, 0);
                prop_assert_eq!(&state, &world.state);
            }
            let at = |us| world.params.decide(&world.state, us, 1, Intent::Take);
            prop_assert_eq!(at(beyond_us), at(MAX_US));
            let mut other = world.state.clone();
            let one = world.params.charge(&mut state, MAX_US, 1);
            let two = world.params.charge(&mut other, beyond_us, 1);
            prop_assert_eq!((state, one), (other, two));
            Ok(())
        })?;
    }
}

#[test]
fn a_limit_of_zero_refuses_for_ever() {
    for kind in KINDS {
        let setup =
            crate::setup::Setup { kind, count: 0, period_us: 1_000_000, burst: 1, queue: 0 };
        let params = setup.params().expect("zero is a rate");
        let mut state = LimitState::default();
        for now_us in [0, 1, 999_999, 1_000_000, MAX_US, u64::MAX] {
            let outcome = params.decide(&state, now_us, 1, Intent::Take);
            assert!(!outcome.admitted, "{kind:?}");
            assert_eq!((outcome.remaining, outcome.limit), (0, 0));
            assert_eq!(outcome.retry_after_us, None, "no wait can help");
            assert_eq!(outcome.more_after_us, None);
            assert!(params.decide(&state, now_us, 0, Intent::Take).admitted, "nothing passes");
            params.charge(&mut state, now_us, 1);
        }
    }
}
