//! The bound holds for every pair of admissions, net of give-backs.

use crate::generate::{self, EVERYTHING, Mix, Trace};
use crate::setup::{Kind, Setup};
use crate::world::{Done, World};
use proptest::prelude::*;
use tollgate_core::Intent;

/// Another rate has another bound.
const STEADY: Mix = Mix { tiers: false, ..EVERYTHING };

proptest! {
    #![proptest_config(generate::cases(400))]

    #[test]
    fn any_two_admissions_keep_the_bound(trace in generate::trace(STEADY)) {
        keeps_the_bound(&trace)?;
    }

    #[test]
    fn admissions_alone_keep_the_bound(
        trace in generate::trace(Mix { give_backs: false, ..STEADY })
    ) {
        keeps_the_bound(&trace)?;
    }
}

fn keeps_the_bound(trace: &Trace) -> Result<(), TestCaseError> {
    let mut before_us = trace.start_us;
    let mut stepped_back = false;
    let mut live = true;
    World::run(trace, |world, done| {
        stepped_back |= world.now_us < before_us;
        before_us = world.now_us;
        // The bound does not apply in three cases. A single timestamp forgets that the clock was
        // once ahead, so time may refill units twice. Re-dated counts have no instant to compare.
        // State after the end of time is not kept.
        let gave_back = matches!(done, Done::GaveBack { .. });
        live &= !(gave_back && stepped_back && world.setup().is_one_timestamp());
        live &= !world.redated && !world.ends_soon();
        if live && matches!(done, Done::Decided { intent: Intent::Take, .. }) {
            admissions_fit(world)?;
        }
        Ok(())
    })
}

/// Checks every interval that ends with the latest admission.
fn admissions_fit(world: &World) -> Result<(), TestCaseError> {
    let admitted = world.held.iter().filter(|held| held.admitted && held.units > 0);
    let mut net: Vec<(u64, u128)> =
        admitted.map(|held| (held.receipt.at_us, held.units.into())).collect();
    net.sort_unstable();
    for (first, &(from_us, _)) in net.iter().enumerate() {
        let mut units = 0;
        for &(at_us, cost) in &net[first..] {
            units += cost;
            let most = bound(world.setup(), at_us - from_us);
            prop_assert!(
                units <= most,
                "{} units from {} to {}, at most {}",
                units,
                from_us,
                at_us,
                most
            );
        }
    }
    Ok(())
}

/// The most units that an interval from one admission to another, both included, may admit.
pub(super) fn bound(setup: &Setup, span_us: u64) -> u128 {
    let [count, period, burst, queue, span] =
        [setup.count, setup.period_us, setup.burst, setup.queue, span_us].map(u128::from);
    if count == 0 {
        return 0;
    }
    // The shortest half-open interval that contains both instants.
    let interval = span + 1;
    match setup.kind {
        Kind::FixedWindow => count * (interval.div_ceil(period) + 1),
        Kind::SlidingWindow => count + count * interval / period,
        Kind::SlidingLog => count * interval.div_ceil(period),
        Kind::TokenBucket | Kind::Gcra => burst + span * count / period,
        Kind::LeakyBucket => burst + queue + span * count / period,
        // Within one time to live, all slots net of releases are held at once.
        Kind::Concurrency => count * interval.div_ceil(period),
    }
}
