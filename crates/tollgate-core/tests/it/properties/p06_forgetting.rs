//! Dropping state after its full reset is unobservable.

use crate::generate::{self, EVERYTHING, Mix, Trace};
use crate::world::{Done, World};
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent, LimitState, MAX_US};

proptest! {
    #![proptest_config(generate::cases(300))]

    #[test]
    fn idle_state_is_as_good_as_none(
        trace in generate::trace(EVERYTHING),
        after in generate::trace(Mix { back: false, leaps_back: false, give_backs: false, ..EVERYTHING }),
        later_us in prop_oneof![Just(0_u64), Just(1), 0_u64..100_000_000],
    ) {
        World::run(&trace, |world, _| {
            let idle_us = world.params.idle_at_us(&world.state).max(world.now_us);
            forgotten(world, idle_us + later_us, &after)
        })?;
    }

    #[test]
    fn a_full_reset_is_full(
        trace in generate::trace(EVERYTHING),
        after in generate::trace(Mix { back: false, leaps_back: false, give_backs: false, ..EVERYTHING }),
    ) {
        World::run(&trace, |world, done| match done {
            Done::Decided { outcome, .. } => {
                forgotten(world, world.now_us.saturating_add(outcome.reset_after_us), &after)
            }
            _ => Ok(()),
        })?;
    }

    /// The instant is also tight: one microsecond earlier, dropping the state is observable.
    #[test]
    fn state_is_idle_no_later_than_it_must(trace in generate::trace(EVERYTHING)) {
        World::run(&trace, |world, done| {
            if let Done::Decided { intent: Intent::Take, outcome, cost } = done
                && outcome.admitted && cost > 0 && !world.redated && !world.ends_soon()
            {
                let reset_us = world.now_us + outcome.reset_after_us;
                prop_assert_eq!(world.params.idle_at_us(&world.state), reset_us);
            }
            Ok(())
        })?;
    }
}

/// From `from_us` on, a key with this state answers like a key without state.
fn forgotten(world: &World, from_us: u64, after: &Trace) -> Result<(), TestCaseError> {
    if from_us > MAX_US {
        return Ok(());
    }
    let mut kept = world.clone();
    kept.now_us = from_us;
    let mut fresh = kept.clone();
    fresh.state = LimitState::default();
    for next in after.moves.iter().take(6) {
        let next = kept.concrete(next);
        let (kept_done, fresh_done) = (kept.make(&next), fresh.make(&next));
        prop_assert_eq!(format!("{kept_done:?}"), format!("{fresh_done:?}"), "from {}", from_us);
        prop_assert_eq!(kept.peek(1), fresh.peek(1));
    }
    Ok(())
}
