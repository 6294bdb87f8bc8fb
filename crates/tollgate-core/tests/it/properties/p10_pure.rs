//! What threads need of the core: the same arguments give the same answer and the same state, whatever else was asked.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent};

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
}
