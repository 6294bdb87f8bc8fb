//! The core is pure, as threads need it: equal arguments give equal answers and states, whatever
//! was decided in between.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::algorithm::Taken;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};

proptest! {
    #![proptest_config(generate::cases(150))]

    #[test]
    fn deciding_and_charging_depend_on_their_arguments_only(
        trace in generate::trace(EVERYTHING),
        other in generate::trace(EVERYTHING),
    ) {
        let mut again = World::new(&trace);
        let mut moves = trace.moves.iter();
        World::run(&trace, |world, done| {
            // Another key under another limit, in between.
            World::run(&other, |_, _| Ok::<(), TestCaseError>(()))?;
            if let Some(next) = moves.next() {
                let repeated = again.make(next);
                prop_assert_eq!(format!("{done:?}"), format!("{repeated:?}"));
                prop_assert_eq!(&world.state, &again.state);
                prop_assert_eq!(&world.held.last().map(|h| h.receipt), &again.held.last().map(|h| h.receipt));
            }
            let ask = || world.params.decide(&world.state, world.now_us, 1, Intent::Take);
            prop_assert_eq!(ask(), ask());
            Ok(())
        })?;
    }

    /// `take` must give the same result as deciding and then charging.
    #[test]
    fn taking_is_deciding_and_charging(trace in generate::trace(EVERYTHING)) {
        World::run(&trace, |world, _| {
            for cost in [0, 1, 2, world.params.capacity() / 2, world.params.capacity(), u64::MAX] {
                let (mut state, mut charged) = (world.state.clone(), world.state.clone());
                let outcome = world.params.decide(&state, world.now_us, cost, Intent::Take);
                let Some(answer) = take(&world.params, &mut state, world.now_us, cost) else {
                    prop_assert_eq!(&state, &charged, "nothing changes without an answer");
                    continue;
                };
                prop_assert!(cost > 0);
                let expected = if outcome.admitted {
                    let receipt = world.params.charge(&mut charged, world.now_us, cost);
                    Taken::Charged(outcome, receipt)
                } else {
                    Taken::Refused(outcome)
                };
                prop_assert_eq!((&answer, &state), (&expected, &charged));
                if let LimitParams::SlidingWindow(window) = &world.params
                    && let LimitState::SlidingWindow(mut state) = world.state.clone()
                    && let Some(answer) = window.take_in_window(&mut state, world.now_us, cost)
                {
                    prop_assert_eq!((answer, LimitState::SlidingWindow(state)), (expected, charged));
                }
            }
            Ok(())
        })?;
    }
}

/// Runs `take` of any algorithm on its state.
fn take(params: &LimitParams, state: &mut LimitState, now_us: u64, cost: u64) -> Option<Taken> {
    match (params, state) {
        (LimitParams::Gcra(algorithm), LimitState::Tat(state)) => {
            algorithm.take(state, now_us, cost)
        }
        (LimitParams::LeakyBucket(algorithm), LimitState::Tat(state)) => {
            algorithm.take(state, now_us, cost)
        }
        (LimitParams::TokenBucket(algorithm), LimitState::TokenBucket(state)) => {
            algorithm.take(state, now_us, cost)
        }
        (LimitParams::FixedWindow(algorithm), LimitState::FixedWindow(state)) => {
            algorithm.take(state, now_us, cost)
        }
        (LimitParams::SlidingWindow(algorithm), LimitState::SlidingWindow(state)) => {
            algorithm.take(state, now_us, cost)
        }
        _ => None,
    }
}
