//! A clock stepping back never admits more while state is kept: time is clamped to the state's own
//! latest instant, `retry_after` counts from the unclamped now, and window state dated more than
//! one window ahead is re-dated to one window ahead, counts kept.

use crate::generate::{self, Cost, EVERYTHING, Mix, Move, Op, Step};
use crate::world::{Done, World};
use proptest::prelude::*;
use tollgate_core::{Algorithm, Intent};

const FORTH: Mix = Mix { back: false, leaps_back: false, ..EVERYTHING };
const NO_LEAPS: Mix = Mix { leaps_back: false, give_backs: false, debts: false, ..EVERYTHING };

proptest! {
    #![proptest_config(generate::cases(300))]

    #[test]
    fn an_earlier_instant_admits_no_more(
        trace in generate::trace(FORTH),
        sixteenths in 0_u64..200,
        cost in 1_u64..6,
    ) {
        World::run(&trace, |world, _| {
            let params = world.params;
            let now = world.peek(cost);
            let step_us = world.setup().period_us * sixteenths / 16 + 1;
            let back_us = world.now_us.saturating_sub(step_us);
            let mut state = world.state.clone();
            let redated = params.redate(&mut state, back_us);
            let back = params.decide(&state, back_us, cost, Intent::Peek);
            prop_assert!(back.remaining <= now.remaining);
            prop_assert!(now.admitted || !back.admitted);
            if !redated && !now.admitted {
                // Refused at both, it is admitted at one and the same instant.
                let then = |from_us: u64, wait: Option<u64>| wait.map(|wait_us| from_us + wait_us);
                prop_assert_eq!(
                    then(back_us, back.retry_after_us),
                    then(world.now_us, now.retry_after_us)
                );
            }
            Ok(())
        })?;
    }

    /// What is charged behind the state's latest instant is counted at that instant.
    #[test]
    fn a_charge_behind_is_counted_at_the_latest(
        trace in generate::trace(Mix { give_backs: false, ..FORTH }),
        part in 0_u64..16,
        cost in 1_u64..6,
    ) {
        World::run(&trace, |world, done| {
            let taken = matches!(done, Done::Decided { cost, outcome, intent: Intent::Take }
                if outcome.admitted && cost > 0);
            if !taken || world.ends_soon() {
                return Ok(());
            }
            // Within one window, so that nothing is re-dated.
            let back_us = world.now_us.saturating_sub(world.setup().period_us * part / 16);
            let (mut latest, mut behind) = (world.state.clone(), world.state.clone());
            let at = world.params.charge(&mut latest, world.now_us, cost).at_us;
            let receipt = world.params.charge(&mut behind, back_us, cost);
            prop_assert_eq!(latest, behind);
            prop_assert!(receipt.at_us <= at);
            Ok(())
        })?;
    }

    /// Unit requests on a clock that steps back, and on a twin's that waits where the state is:
    /// request by request the sum never runs ahead of the twin's.
    #[test]
    fn a_twin_that_waits_admits_as_much(trace in generate::trace(NO_LEAPS)) {
        let mut world = World::new(&trace);
        let mut twin = world.clone();
        let (mut latest_us, mut sum, mut twin_sum) = (0, 0_u64, 0_u64);
        for next in &trace.moves {
            let unit = Op::Check(Cost::Units(1));
            let done = world.make(&Move { step: next.step, op: unit });
            // How far the state knows the clock to have come.
            let step = Step::To(world.now_us.max(latest_us));
            let twin_done = twin.make(&Move { step, op: unit });
            if world.redated || world.ends_soon() {
                break;
            }
            let admitted = |done| matches!(done, Done::Decided { outcome, .. } if outcome.admitted);
            if admitted(done) {
                latest_us = latest_us.max(world.now_us);
            }
            sum += u64::from(admitted(done));
            twin_sum += u64::from(admitted(twin_done));
            prop_assert!(sum <= twin_sum, "{} rather than {} at {}", sum, twin_sum, world.now_us);
        }
    }

    /// However far ahead the state was dated, one window ahead is where it is taken to be, with all
    /// it counted.
    #[test]
    fn a_leap_is_forgotten_after_two_windows(trace in generate::trace(FORTH), windows in 2_u64..1_000) {
        World::run(&trace, |world, _| {
            let (params, window_us) = (world.params, world.setup().period_us);
            if !world.setup().redates() {
                prop_assert!(!params.redate(&mut world.state.clone(), 0), "there is no window");
                return Ok(());
            }
            let back_us = world.now_us.saturating_sub(window_us * windows);
            let mut state = world.state.clone();
            let redated = params.redate(&mut state, back_us);
            let outcome = params.decide(&state, back_us, 1, Intent::Peek);
            prop_assert!(outcome.reset_after_us <= 3 * window_us);
            prop_assert!(!params.redate(&mut state, back_us), "once is enough");
            // Whoever decides or charges without re-dating first comes to the same, for this once.
            let unseen = params.decide(&world.state, back_us, 1, Intent::Peek);
            prop_assert_eq!(unseen, outcome);
            let mut charged = (world.state.clone(), state.clone());
            let receipts = (
                params.charge(&mut charged.0, back_us, 1),
                params.charge(&mut charged.1, back_us, 1),
            );
            prop_assert_eq!(receipts.0, receipts.1);
            prop_assert_eq!(charged.0, charged.1);
            if redated {
                prop_assert!(outcome.remaining <= world.peek(1).remaining, "counts are kept");
                let later_us = back_us + 3 * window_us;
                let later = params.decide(&state, later_us, 1, Intent::Peek);
                prop_assert_eq!(later.remaining, params.capacity());
            }
            Ok(())
        })?;
    }
}
