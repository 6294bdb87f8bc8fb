//! Generators for the properties: limits, clocks that step forward and back, and sequences of
//! operations.
//!
//! Operations are relative to the state at that time ("one more than remains", "one microsecond
//! before the retry instant"), so that they hit boundaries. [`World`](crate::world::World) makes
//! them concrete.

use crate::setup::{KINDS, Kind, Setup};
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt;
use tollgate_core::MAX_US;

const DAY_US: u64 = 86_400_000_000;

/// A limit with two tiers, the first instant, and the moves.
#[derive(Clone, Debug)]
pub struct Trace {
    pub tiers: [Setup; 2],
    pub start_us: u64,
    pub moves: Vec<Move>,
}

/// A step of the clock, then an operation.
#[derive(Clone, Copy)]
pub struct Move {
    pub step: Step,
    pub op: Op,
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Check(Cost),
    Peek(Cost),
    /// A settlement above the estimate: charged without a decision.
    Debt(Cost),
    /// Gives back eighths of the units left of one held charge, at least one unit.
    GiveBack {
        which: usize,
        eighths: u64,
    },
    /// Switches to the other tier.
    Tier,
}

#[derive(Clone, Copy, Debug)]
pub enum Cost {
    Units(u64),
    /// Eighths of the capacity.
    Share(u64),
    /// The remaining units, plus or minus an offset.
    Remaining(i64),
    /// The capacity, plus or minus an offset.
    Capacity(i64),
}

/// How the clock moves. Steps to boundaries have an offset in microseconds.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Stay,
    Micros(u64),
    /// Sixteenths of the period.
    Share(u64),
    Edge(i64),
    Retry(i64),
    Reset(i64),
    More(i64),
    Idle(i64),
    /// Sixteenths of the period, backwards.
    Back(u64),
    /// Whole periods, backwards.
    LeapBack(u64),
    /// To a given instant.
    To(u64),
}

/// The operations of a sequence besides checks and peeks.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub debts: bool,
    pub give_backs: bool,
    pub tiers: bool,
    pub back: bool,
    pub leaps_back: bool,
}

pub const EVERYTHING: Mix =
    Mix { debts: true, give_backs: true, tiers: true, back: true, leaps_back: true };

/// On one line, so that a failing sequence is short.
impl fmt::Debug for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{:?}, {:?}", self.step, self.op))
    }
}

/// The number of cases, unless `PROPTEST_CASES` is set.
pub fn cases(default: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(default),
    }
}

/// Rates that divide their period, rates that do not, the vectors of the design, small rates, and
/// zero.
fn rate() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![
        6 => select(vec![(1, 1_000), (2, 1_000_000), (5, 1_000_000), (10, 60_000_000), (100, 1_000_000)]),
        6 => select(vec![
            (7, 60_000_000), (1_000_000, DAY_US), (1_000_007, 1_000_000), (3, 1_000),
            (4_294_967_295, 366 * DAY_US),
        ]),
        8 => (1_u64..20, select(vec![1_000, 1_001, 7_919, 1_000_000, 60_000_000])),
        1 => (1_000_u64..=u64::from(u32::MAX), 1_000_u64..=366 * DAY_US),
        1 => Just((0, 1_000_000)),
    ]
}

fn burst(count: u64) -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(count.max(1)), 2 => 1_u64..6, 1 => 1..=count.max(1) * 2]
        .prop_map(|burst| burst.min(u64::from(u32::MAX)))
}

/// Parameters of one algorithm. Both tiers have the same period, since another period is another
/// limit.
fn tiers(kind: Kind) -> impl Strategy<Value = [Setup; 2]> {
    let params = |(count, period_us): (u64, u64)| {
        (Just(count), Just(period_us), burst(count), select(vec![0, 0, 1, 3, 10]))
    };
    let setup =
        move |(count, period_us, burst, queue)| Setup { kind, count, period_us, burst, queue };
    let valid = |setup: &Setup| setup.params().is_ok();
    let first = rate().prop_flat_map(params).prop_map(setup).prop_filter("in range", valid);
    first.prop_flat_map(move |one| {
        let other =
            prop_oneof![Just(one.count * 2), Just(one.count / 2), 0_u64..30, Just(one.count)]
                .prop_map(move |count| (count.min(u64::from(u32::MAX)), one.period_us));
        let other = other.prop_flat_map(params).prop_map(setup).prop_filter("in range", valid);
        (Just(one), other).prop_map(|(one, other)| [one, other])
    })
}

pub fn kind() -> impl Strategy<Value = Kind> {
    select(&KINDS[..])
}

fn start(period_us: u64) -> impl Strategy<Value = u64> {
    let today = 1_700_000_000_000_000;
    let edge = today / period_us * period_us;
    prop_oneof![
        3 => select(vec![0, 1, period_us - 1, period_us, edge, edge - 1, edge + 1]),
        1 => today..today + 2 * period_us,
    ]
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        28 => Just(Cost::Units(1)),
        14 => (2_u64..6).prop_map(Cost::Units),
        18 => (1_u64..=8).prop_map(Cost::Share),
        30 => (-1_i64..=1).prop_map(Cost::Remaining),
        6 => (-1_i64..=1).prop_map(Cost::Capacity),
        3 => Just(Cost::Units(0)),
        1 => select(vec![u64::from(u32::MAX), 1 << 40, MAX_US, u64::MAX]).prop_map(Cost::Units),
    ]
}

fn step(mix: Mix) -> impl Strategy<Value = Step> {
    let near = || -1_i64..=1;
    // A weight cannot be zero, so a step that is left out becomes `Stay`.
    let or_stay = |on: bool, step: Step| if on { step } else { Step::Stay };
    prop_oneof![
        34 => Just(Step::Stay),
        6 => prop_oneof![Just(1_u64), 2_u64..1_000].prop_map(Step::Micros),
        12 => (1_u64..40).prop_map(Step::Share),
        9 => near().prop_map(Step::Edge),
        12 => near().prop_map(Step::Retry),
        5 => near().prop_map(Step::Reset),
        6 => near().prop_map(Step::More),
        5 => near().prop_map(Step::Idle),
        5 => (1_u64..24).prop_map(move |n| or_stay(mix.back, Step::Back(n))),
        3 => (1_u64..60).prop_map(move |n| or_stay(mix.leaps_back, Step::LeapBack(n))),
        2 => Just(or_stay(mix.leaps_back, Step::Micros(70 * DAY_US))),
    ]
}

fn give_back() -> impl Strategy<Value = Op> {
    (any::<usize>(), 1_u64..=8).prop_map(|(which, eighths)| Op::GiveBack { which, eighths })
}

fn op(mix: Mix) -> impl Strategy<Value = Op> {
    let or_peek = |on: bool, op: Op| if on { op } else { Op::Peek(Cost::Units(1)) };
    // The API refuses settlements above 2^32 - 1; `extremes` has larger debts.
    let debt = prop_oneof![cost(), Just(Cost::Units(u32::MAX.into()))];
    prop_oneof![
        62 => cost().prop_map(Op::Check),
        8 => cost().prop_map(Op::Peek),
        6 => debt.prop_map(move |cost| or_peek(mix.debts, Op::Debt(cost))),
        18 => give_back().prop_map(move |op| or_peek(mix.give_backs, op)),
        5 => Just(or_peek(mix.tiers, Op::Tier)),
    ]
}

/// A sequence for a limit of this algorithm.
pub fn trace_of(kind: Kind, mix: Mix) -> impl Strategy<Value = Trace> {
    tiers(kind).prop_flat_map(move |tiers| {
        let moves = (step(mix), op(mix)).prop_map(|(step, op)| Move { step, op });
        (start(tiers[0].period_us), prop::collection::vec(moves, 1..40))
            .prop_map(move |(start_us, moves)| Trace { tiers, start_us, moves })
    })
}

/// A sequence for a limit of any algorithm.
pub fn trace(mix: Mix) -> impl Strategy<Value = Trace> {
    kind().prop_flat_map(move |kind| trace_of(kind, mix))
}

/// Extreme counts, periods, costs and instants together, including instants after the end of time.
pub fn extreme(kind: Kind) -> impl Strategy<Value = Trace> {
    let count = || select(vec![0, 1, 2, 1_000_007, u64::from(u32::MAX) - 1, u64::from(u32::MAX)]);
    let unit = || select(vec![1_u64, 2, u32::MAX.into()]);
    let period = select(vec![1_000_u64, 1_001, 1_000_000, 366 * DAY_US - 1, 366 * DAY_US]);
    let pair =
        (period, [count(), count()], [unit(), unit()], select(vec![0, 1, u64::from(u32::MAX)]));
    let tiers = pair.prop_map(move |(period_us, counts, bursts, queue)| {
        [0, 1].map(|i| Setup { kind, count: counts[i], period_us, burst: bursts[i], queue })
    });
    let tiers = tiers.prop_filter("in range", |tiers| tiers.iter().all(|t| t.params().is_ok()));
    let ends = [0, 1, MAX_US - 1_000_000, MAX_US - 1, MAX_US, MAX_US + 1, u64::MAX - 1, u64::MAX];
    let units = [0, 1, 2, u64::from(u32::MAX), 1 << 32, MAX_US - 1, MAX_US, MAX_US + 1, u64::MAX];
    let cost = move || prop_oneof![2 => select(units.to_vec()).prop_map(Cost::Units), 3 => cost()];
    let op = prop_oneof![
        4 => cost().prop_map(Op::Check),
        1 => cost().prop_map(Op::Peek),
        2 => cost().prop_map(Op::Debt),
        2 => give_back(),
        1 => Just(Op::Tier),
    ];
    let step = prop_oneof![2 => step(EVERYTHING), 1 => select(ends.to_vec()).prop_map(Step::To)];
    let moves = prop::collection::vec((step, op).prop_map(|(step, op)| Move { step, op }), 1..30);
    (tiers, select(ends.to_vec()), moves).prop_map(|(tiers, start_us, moves)| Trace {
        tiers,
        start_us,
        moves,
    })
}
