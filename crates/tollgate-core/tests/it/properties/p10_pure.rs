//! What threads need of the core: the same arguments give the same answer and the same state, whatever else was asked.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent, Numbers, Outcome, Receipt, State};

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
            // Another key in between, under another limit.
            World::run(&other, |_, _| Ok::<(), TestCaseError>(()))?;
            if let Some(next) = moves.next() {
                let repeated = again.make(next);
                prop_assert_eq!(format!("{done:?}"), format!("{repeated:?}"));
                prop_assert_eq!(&world.state, &again.state);
                prop_assert_eq!(&world.held.last().map(|h| h.receipt), &again.held.last().map(|h| h.receipt));
            }
            let ask = || world.numbers.decide(&world.state, world.now_us, 1, Intent::Take);
            prop_assert_eq!(ask(), ask());
            Ok(())
        })?;
    }

    /// Taking in one go is a short cut for what a store does in two, and must not be told from it.
    #[test]
    fn taking_is_deciding_and_charging(trace in generate::trace(EVERYTHING)) {
        World::run(&trace, |world, _| {
            for cost in [0, 1, 2, world.numbers.capacity() / 2, world.numbers.capacity(), u64::MAX] {
                let (mut state, mut charged) = (world.state.clone(), world.state.clone());
                let outcome = world.numbers.decide(&state, world.now_us, cost, Intent::Take);
                let Some(answer) = take(&world.numbers, &mut state, world.now_us, cost) else {
                    prop_assert_eq!(&state, &charged, "nothing changes without an answer");
                    continue;
                };
                let receipt = world.numbers.charge(&mut charged, world.now_us, cost);
                prop_assert!(outcome.admitted && cost > 0);
                prop_assert_eq!((answer, &state), ((outcome, receipt), &charged));
            }
            Ok(())
        })?;
    }
}

/// The short cut of whichever algorithm it is, on state of its own.
fn take(
    numbers: &Numbers,
    state: &mut State,
    now_us: u64,
    cost: u64,
) -> Option<(Outcome, Receipt)> {
    match (numbers, state) {
        (Numbers::Gcra(algorithm), State::Tat(state)) => algorithm.take(state, now_us, cost),
        (Numbers::LeakyBucket(algorithm), State::Tat(state)) => algorithm.take(state, now_us, cost),
        (Numbers::TokenBucket(algorithm), State::TokenBucket(state)) => {
            algorithm.take(state, now_us, cost)
        }
        (Numbers::FixedWindow(algorithm), State::FixedWindow(state)) => {
            algorithm.take(state, now_us, cost)
        }
        (Numbers::SlidingWindow(algorithm), State::SlidingWindow(state)) => {
            algorithm.take(state, now_us, cost)
        }
        _ => None,
    }
}
