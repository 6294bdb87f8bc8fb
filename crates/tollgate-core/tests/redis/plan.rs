//! The raw choices of a trace, which proptest can shrink, and the rates to try.

use proptest::collection::vec;
use proptest::prelude::*;

/// A trace before it runs: its start, its rate, and its steps.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) start_us: u64,
    pub(crate) count: u64,
    pub(crate) period_us: u64,
    /// The index of the burst and queue, among those that the rate allows.
    pub(crate) size: u8,
    pub(crate) steps: Vec<Step>,
}

/// One step: an operation, a time and an amount. Their meaning depends on the answers so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) op: u8,
    pub(crate) hop: u8,
    pub(crate) cost: u8,
    pub(crate) raw: u64,
}

pub(crate) const MS: u64 = 1_000;
pub(crate) const DAY: u64 = 86_400_000_000;
pub(crate) const MAX_US: u64 = tollgate_core::MAX_US;

/// Rates that exceed 2^53 in a naive mirror, and rates whose count does not divide the period.
const VECTORS: [(u64, u64); 10] = [
    (7, 60_000 * MS),
    (1_000_000, DAY),
    (1_000_007, 1_000 * MS),
    (3, MS),
    (4_294_967_295, 366 * DAY),
    (104_251, DAY),
    (4_294_967_295, MS),
    (1, 366 * DAY),
    (256, 1_001),
    (65_536, 60_000_001),
];

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    (start(), rate(), any::<u8>(), steps()).prop_map(
        |(start_us, (count, period_us), size, steps)| Plan {
            start_us,
            count,
            period_us,
            size,
            steps,
        },
    )
}

/// Mostly any steps; sometimes a debt of centuries first, given back after as long.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let far = any::<(u64, u64)>().prop_map(|(charged, given)| {
        let charge = Step { op: 30, hop: 252, cost: 247, raw: charged };
        vec![charge, Step { op: 50, hop: 253, cost: 255, raw: given }]
    });
    prop_oneof![
        11 => vec(step(), 1..60),
        1 => (far, vec(step(), 1..20)).prop_map(|(far, steps)| [far, steps].concat()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    any::<(u8, u8, u8, u64)>().prop_map(|(op, hop, cost, raw)| Step { op, hop, cost, raw })
}

fn rate() -> impl Strategy<Value = (u64, u64)> {
    let period =
        || (0..37_u32, any::<u64>()).prop_map(|(bits, raw)| MS + raw % (1 << bits).max(MS));
    prop_oneof![
        6 => prop::sample::select(VECTORS.as_slice()),
        4 => (0..=12_u64, period()),
        2 => (0..=u64::from(u32::MAX), MS..=366 * DAY),
        1 => ((1..=1_000_u64), prop::sample::select(vec![MS, 1_000 * MS, 60_000 * MS, DAY])),
    ]
}

fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(1_700_000_000_000_000_u64).prop_perturb(|at, mut rng| at + rng.random::<u64>() % DAY),
        1 => 0..2 * DAY,
        1 => (0..2 * DAY).prop_map(|before| MAX_US - before),
        1 => (0..=5_u64).prop_map(|before| MAX_US - before),
        1 => 0..=MAX_US,
    ]
}
