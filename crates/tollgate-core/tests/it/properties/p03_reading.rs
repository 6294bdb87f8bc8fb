//! A peek or a refusal changes nothing in the algorithm's state.

use crate::generate::{self, Cost, EVERYTHING, Move, Op, Step};
use crate::world::{Done, World};
use proptest::prelude::*;
use tollgate_core::Intent;

proptest! {
    #![proptest_config(generate::cases(300))]

    #[test]
    fn what_is_not_taken_leaves_no_mark(trace in generate::trace(EVERYTHING)) {
        let mut before = World::new(&trace);
        for next in &trace.moves {
            let mut after = before.clone();
            if let Done::Decided { intent, outcome, .. } = after.make(next) {
                let taken = outcome.admitted && intent == Intent::Take;
                // Re-dating changes the instants of counts, not the counts. Without a leap there is
                // no re-dating.
                if !taken && !after.redated {
                    prop_assert_eq!(&before.state, &after.state);
                }
            }
            before = after;
        }
    }

    /// Peeks and impossible costs between the requests of a sequence change none of its answers.
    #[test]
    fn peeks_in_between_are_unobservable(trace in generate::trace(EVERYTHING), cost in 0_u64..20) {
        let peek = |cost| Move { step: Step::Stay, op: Op::Peek(Cost::Units(cost)) };
        let over = Move { step: Step::Stay, op: Op::Check(Cost::Units(u64::MAX)) };
        let mut plain = World::new(&trace);
        let mut peeked = plain.clone();
        for next in &trace.moves {
            // Both worlds repeat the instants and costs of the plain one.
            let next = plain.concrete(next);
            let done = plain.make(&next);
            let same = peeked.make(&next);
            prop_assert_eq!(format!("{done:?}"), format!("{same:?}"));
            peeked.make(&peek(cost));
            peeked.make(&over);
            peeked.make(&peek(u64::MAX));
            // The first request notices a leap, and the plain world notices it later.
            if peeked.redated {
                break;
            }
        }
    }
}
