//! A clock that steps back never admits more while state is kept. Time is clamped to the state's
//! latest instant, and `retry_after` counts from the unclamped clock. State dated more than one
//! window ahead is re-dated, and keeps its counts and debts. Window state is moved to one window
//! ahead, other state to now.

use super::p01_bound::bound;
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
                // If both clocks refuse, both admit at the same instant.
                let then = |from_us: u64, wait: Option<u64>| wait.map(|wait_us| from_us + wait_us);
                prop_assert_eq!(
                    then(back_us, back.retry_after_us),
                    then(world.now_us, now.retry_after_us)
                );
            }
            Ok(())
        })?;
    }

    /// A charge before the state's latest instant is counted at that instant.
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
            // Within one window, so that no state is re-dated.
            let window_us = world.setup().horizon_us().min(world.setup().period_us);
            let back_us = world.now_us.saturating_sub(window_us * part / 16);
            let (mut latest, mut behind) = (world.state.clone(), world.state.clone());
            let at = world.params.charge(&mut latest, world.now_us, cost).at_us;
            let receipt = world.params.charge(&mut behind, back_us, cost);
            let answer = |state| world.params.decide(state, world.now_us, cost, Intent::Peek);
            prop_assert_eq!(answer(&latest), answer(&behind));
            prop_assert!(receipt.at_us <= at);
            Ok(())
        })?;
    }

    /// Sends unit requests with a clock that steps back, and to a twin with a clock that waits
    /// instead. At no request has the first admitted more than the twin.
    #[test]
    fn a_twin_that_waits_admits_as_much(trace in generate::trace(NO_LEAPS)) {
        let mut world = World::new(&trace);
        let mut twin = world.clone();
        let (mut latest_us, mut sum, mut twin_sum) = (0, 0_u64, 0_u64);
        for next in &trace.moves {
            let unit = Op::Check(Cost::Units(1));
            let done = world.make(&Move { step: next.step, op: unit });
            // The latest instant in the state.
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

    /// State dated any number of windows ahead is moved to one window ahead, and keeps its counts.
    #[test]
    fn a_leap_is_forgotten_after_two_windows(trace in generate::trace(FORTH), windows in 2_u64..1_000) {
        World::run(&trace, |world, _| {
            let (params, window_us) = (world.params, world.setup().period_us);
            if !world.setup().has_windows() {
                return Ok(());
            }
            let back_us = world.now_us.saturating_sub(window_us * windows);
            let mut state = world.state.clone();
            let redated = params.redate(&mut state, back_us);
            let outcome = params.decide(&state, back_us, 1, Intent::Peek);
            prop_assert!(outcome.reset_after_us <= 3 * window_us);
            prop_assert!(!params.redate(&mut state, back_us), "once is enough");
            // A decision or a charge without re-dating first gives the same result, once.
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

    /// Buckets and slots that a leap dated keep their debt from now on. It is at most one bucket,
    /// one time to live or the longest debt.
    #[test]
    fn a_leap_forgives_nothing_and_is_over_at_once(
        trace in generate::trace(FORTH),
        back in 1_u64..1_000_000_000_000,
    ) {
        let longest = trace.tiers.map(|tier| tier.horizon_us()).into_iter().max().unwrap_or(0);
        World::run(&trace, |world, _| {
            // A limit without a rate refuses everything, whenever its state is dated.
            if world.setup().has_windows() || world.setup().count == 0 || world.ends_soon() {
                return Ok(());
            }
            let (params, mut state) = (world.params, world.state.clone());
            let owed_us = params.idle_at_us(&state).saturating_sub(world.now_us);
            let back_us = world.now_us.saturating_sub(back);
            let redated = params.redate(&mut state, back_us);
            let owed_after_us = params.idle_at_us(&state).saturating_sub(back_us);
            prop_assert!(owed_after_us >= owed_us, "{} of {}", owed_after_us, owed_us);
            let debts = world.held.iter().map(|held| (held.receipt.mark_us + 1).saturating_sub(held.receipt.at_us));
            let most_us = debts.max().unwrap_or(0).max(longest);
            let waited_out_us = if redated { 0 } else { world.setup().horizon_us().max(1_000_000) };
            prop_assert!(owed_after_us <= most_us + waited_out_us);
            prop_assert!(!params.redate(&mut state, back_us), "once is enough");
            // A charge without re-dating first gives the same result.
            let mut unseen = world.state.clone();
            params.charge(&mut unseen, back_us, 1);
            params.charge(&mut state, back_us, 1);
            prop_assert_eq!(unseen, state);
            Ok(())
        })?;
    }

    /// A clock that is ahead for a while and then back exceeds the bound, in true time, by one
    /// capacity: that of the clock's own advance.
    #[test]
    fn a_leap_admits_one_capacity_more(
        trace in generate::trace(Mix { tiers: false, debts: false, give_backs: false, ..FORTH }),
        (from, length) in (0_usize..20, 1_usize..10),
        ahead_us in 1_u64..100_000_000_000,
    ) {
        let (setup, mut world) = (trace.tiers[0], World::new(&trace));
        if setup.has_windows() {
            return Ok(());
        }
        let (mut admitted, mut true_us) = (Vec::new(), trace.start_us);
        for (index, next) in trace.moves.iter().enumerate() {
            let leaps_us = if (from..from + length).contains(&index) { ahead_us } else { 0 };
            world.now_us = true_us;
            let step = world.concrete(&Move { step: next.step, op: Op::Peek(Cost::Units(1)) }).step;
            let Step::To(next_us) = step else { unreachable!("a concrete step") };
            true_us = next_us.max(true_us);
            let done = world.make(&Move { step: Step::To(true_us + leaps_us), op: next.op });
            if world.ends_soon() {
                break;
            }
            if let Done::Decided { cost, intent: Intent::Take, outcome } = done
                && outcome.admitted
            {
                admitted.push((true_us, u128::from(cost)));
            }
        }
        for (first, &(first_us, _)) in admitted.iter().enumerate() {
            let mut units = 0;
            for &(at_us, cost) in &admitted[first..] {
                units += cost;
                let most = bound(&setup, at_us - first_us) + u128::from(world.params.capacity());
                prop_assert!(units <= most, "{} from {} to {}", units, first_us, at_us);
            }
        }
    }
}
