//! The traces: requests, their times, and the limit.

use crate::promise::Limit;

/// One request of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) at_us: u64,
    /// The time of the wall clock, which differs after a clock step.
    pub(crate) wall_us: u64,
    pub(crate) cost: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) limit: Limit,
    pub(crate) steps: Vec<Step>,
    pub(crate) kind: TraceKind,
}

/// The ability that a trace requires of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceKind {
    Plain,
    /// Twenty minutes: needs a virtual clock, or one that runs sixty times as fast.
    Long,
    /// Requests that cost more than one unit.
    Costs,
    /// The wall clock is set back while real time continues.
    ClockStep,
    /// All requests at once, from eight threads.
    Threads,
}

/// A whole minute, so that windows of seconds and minutes begin here.
pub(crate) const START_US: u64 = 1_700_002_800_000_000;
pub(crate) const THREADS: usize = 8;
const SECOND_US: u64 = 1_000_000;
const TEN_A_SECOND: Limit = Limit { count: 10, window_us: SECOND_US };
const SEVEN_A_MINUTE: Limit = Limit { count: 7, window_us: 60 * SECOND_US };

/// All traces.
pub(crate) fn traces() -> Vec<Trace> {
    let steady = (0..50).map(|n| n * 101_000);
    let burst = std::iter::repeat_n(0, 15);
    let boundary = std::iter::once(0)
        .chain((0..9).map(|n| 950_000 + n * 5_000))
        .chain((0..10).map(|n| 1_005_000 + n * 5_000));
    let idle = std::iter::repeat_n(0, 10).chain(std::iter::repeat_n(5 * SECOND_US, 15));
    let odd = (0..1_200).map(|n| n * 1_001_000);
    let costs = [3, 3, 3, 3, 1, 1, 11].into_iter().map(|cost| (0, 0, cost));
    let costs = costs.chain([(500_000, 0, 4), (500_000, 0, 5), (900_000, 0, 4)]);
    // Ten requests, then the wall clock goes back by five seconds. Ten more follow after a tenth of
    // a second, and ten after a second.
    let back = |at_us: u64| (at_us, 5 * SECOND_US, 1);
    let clock = std::iter::repeat_n((6 * SECOND_US, 0, 1), 10)
        .chain(std::iter::repeat_n(back(6_100_000), 10))
        .chain(std::iter::repeat_n(back(7_200_000), 10));
    let threads = std::iter::repeat_n(0, THREADS * 50);
    vec![
        trace(
            "steady",
            "a request every 0.101 s, for 5 s",
            TEN_A_SECOND,
            TraceKind::Plain,
            ones(steady),
        ),
        trace("burst", "15 at once", TEN_A_SECOND, TraceKind::Plain, ones(burst)),
        trace(
            "boundary",
            "one, nine at the end of that second, ten at the start of the next",
            TEN_A_SECOND,
            TraceKind::Plain,
            ones(boundary),
        ),
        trace(
            "idle, burst",
            "10 at once, 5 s without a request, 15 at once",
            TEN_A_SECOND,
            TraceKind::Plain,
            ones(idle),
        ),
        trace(
            "7/min",
            "7 per minute: a request every 1.001 s, for 20 min",
            SEVEN_A_MINUTE,
            TraceKind::Long,
            ones(odd),
        ),
        trace(
            "costs",
            "costs of 3, 3, 3, 3, 1, 1 and 11 at once; 4, 5 and 4 later",
            TEN_A_SECOND,
            TraceKind::Costs,
            costs,
        ),
        trace(
            "clock step",
            "10 at once; the wall clock is set back by 5 s; 10 after 0.1 s and 10 after 1.2 s",
            TEN_A_SECOND,
            TraceKind::ClockStep,
            clock,
        ),
        trace(
            "8 threads",
            "400 at once from 8 threads or connections",
            TEN_A_SECOND,
            TraceKind::Threads,
            ones(threads),
        ),
    ]
}

fn ones(times: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, u64, u64)> {
    times.map(|at_us| (at_us, 0, 1))
}

/// Builds a trace. A step is an instant, the lag of the wall clock, and a cost.
fn trace(
    name: &'static str,
    what: &'static str,
    limit: Limit,
    kind: TraceKind,
    steps: impl Iterator<Item = (u64, u64, u64)>,
) -> Trace {
    let step = |(at_us, behind_us, cost)| {
        let at_us = START_US + at_us;
        Step { at_us, wall_us: at_us - behind_us, cost }
    };
    Trace { name, what, limit, kind, steps: steps.map(step).collect() }
}
