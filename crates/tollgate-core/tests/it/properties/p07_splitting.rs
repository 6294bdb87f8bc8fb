//! `admit(a+b)` iff `admit(a)` then `admit(b)` at one instant, and the state is the same
//! afterwards.

use crate::generate::{self, EVERYTHING};
use crate::world::World;
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent};

proptest! {
    #![proptest_config(generate::cases(400))]

    #[test]
    fn one_cost_is_as_good_as_its_parts(
        trace in generate::trace(EVERYTHING),
        part in 0_u64..=8,
        more in -2_i64..=2,
    ) {
        World::run(&trace, |world, _| {
            if world.ends_soon() {
                return Ok(());
            }
            let (params, now_us) = (world.params, world.now_us);
            let sum = world.peek(1).remaining.saturating_add_signed(more);
            let (a, b) = (sum * part / 8, sum - sum * part / 8);
            let admits = |state: &_, cost| params.decide(state, now_us, cost, Intent::Take).admitted;
            let whole = admits(&world.state, sum);
            let mut parts = world.state.clone();
            let first = admits(&parts, a);
            if first {
                params.charge(&mut parts, now_us, a);
            }
            let both = first && admits(&parts, b);
            prop_assert_eq!(whole, both, "{} as {} and {}", sum, a, b);
            if whole && a > 0 && b > 0 {
                params.charge(&mut parts, now_us, b);
                let mut one = world.state.clone();
                params.charge(&mut one, now_us, sum);
                prop_assert_eq!(one, parts);
            }
            Ok(())
        })?;
    }
}
