//! The rows that are measured.

use contenders::{
    Algorithm, Batch, Contender, FloorBatch, FloorHot, FloorTable, FloorThree, Governor, Library,
    Limit, Limitador, Part, Throttlecrab, Traffic, Whole, default_quota, gcra, paced,
};

const KEYS: usize = 1_000_000;
const ONE: &str = "Limiter::check";
const THREE: &str = "Limiter::check, three quotas";
const BATCH: &str = "store, batch of 64";
const GOVERNOR: &str = "governor";
const SELECT_10: &str = "selection, 10 limits";
const SELECT_1000: &str = "selection, 1,000 limits";
const GATE_10: &str = "gate, 10 limits";
const GATE_1000: &str = "gate, 1,000 limits";
const FEW_AND_MANY: &[usize] = &[1, 2, 8];
const FEW: &[usize] = &[1, 2];

/// The names of all rows, `bytes` included.
pub(crate) const NAMES: &str =
    "hot refused uniform zipf default default-refused beyond algorithms gate parts bytes";

/// One comparison.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) traffic: Traffic,
    /// The numbers of threads.
    pub(crate) threads: &'static [usize],
    pub(crate) contenders: fn() -> Vec<Box<dyn Contender>>,
    /// The contender that the ratios refer to.
    pub(crate) base: &'static str,
    pub(crate) targets: &'static [Target],
}

/// A target: a contender's time is at most `ratio` of the base's.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) base: &'static str,
    pub(crate) ratio: f64,
}

const fn target(name: &'static str, ratio: f64, base: &'static str) -> Target {
    Target { name, base, ratio }
}

/// All rows, in the order of the page.
pub(crate) const ALL: [Row; 10] = [
    Row {
        name: "hot",
        title: "gcra, one hot key",
        traffic: Traffic::Hot,
        threads: FEW_AND_MANY,
        contenders: hot,
        base: GOVERNOR,
        targets: &[target(ONE, 0.6, GOVERNOR), target(THREE, 2.0, ONE)],
    },
    Row {
        name: "refused",
        title: "gcra, flood on one refused key",
        traffic: Traffic::Hot,
        threads: FEW_AND_MANY,
        contenders: refused,
        base: GOVERNOR,
        targets: &[target(ONE, 0.6, GOVERNOR)],
    },
    Row {
        name: "uniform",
        title: "gcra, 1M keys, uniform",
        traffic: Traffic::Uniform(KEYS),
        threads: FEW,
        contenders: many,
        base: GOVERNOR,
        targets: &[
            target(ONE, 0.35, GOVERNOR),
            target(BATCH, 0.12, GOVERNOR),
            target(THREE, 2.0, ONE),
        ],
    },
    Row {
        name: "zipf",
        title: "gcra, 1M keys, zipf 0.99",
        traffic: Traffic::Zipf(KEYS),
        threads: FEW,
        contenders: many,
        base: GOVERNOR,
        targets: &[target(ONE, 0.35, GOVERNOR), target(THREE, 2.0, ONE)],
    },
    Row {
        name: "default",
        title: "Default quota (sliding window), 1M keys, uniform",
        traffic: Traffic::Uniform(KEYS),
        threads: FEW,
        contenders: default_many,
        base: GOVERNOR,
        targets: &[target(ONE, 0.4, GOVERNOR)],
    },
    Row {
        name: "default-refused",
        title: "Default quota, flood on one refused key",
        traffic: Traffic::Hot,
        threads: FEW_AND_MANY,
        contenders: default_refused,
        base: GOVERNOR,
        targets: &[target(ONE, 0.6, GOVERNOR)],
    },
    Row {
        name: "beyond",
        title: "Default quota at 10M a second, state beyond a word, one hot key",
        traffic: Traffic::Hot,
        threads: FEW,
        contenders: beyond,
        base: GOVERNOR,
        targets: &[target(ONE, 1.0, GOVERNOR)],
    },
    Row {
        name: "algorithms",
        title: "Algorithms, 1M keys, uniform",
        traffic: Traffic::Uniform(KEYS),
        threads: FEW,
        contenders: algorithms,
        base: "gcra",
        targets: &[],
    },
    Row {
        name: "gate",
        title: "From facts to verdict, one hot key",
        traffic: Traffic::Hot,
        threads: FEW,
        contenders: gate,
        base: SELECT_10,
        targets: &[target(SELECT_1000, 2.0, SELECT_10), target(GATE_1000, 2.0, GATE_10)],
    },
    Row {
        name: "parts",
        title: "Parts of a decision",
        traffic: Traffic::Hot,
        threads: FEW,
        contenders: Part::all,
        base: "the counter (rdtsc)",
        targets: &[],
    },
];

fn hot() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new(ONE, gcra(Limit::OPEN))),
        Box::new(Library::three(THREE, Limit::OPEN)),
        Box::new(FloorHot::new(Limit::OPEN)),
        Box::new(FloorThree::new(Limit::OPEN)),
        Box::new(Governor::new(Limit::OPEN)),
        Box::new(Throttlecrab::new(Limit::OPEN)),
        Box::new(Limitador::new(Limit::OPEN, 1)),
    ]
}

fn refused() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new(ONE, gcra(Limit::SHUT))),
        Box::new(FloorHot::new(Limit::SHUT)),
        Box::new(Governor::new(Limit::SHUT)),
        Box::new(Throttlecrab::new(Limit::SHUT)),
        Box::new(Limitador::new(Limit::SHUT, 1)),
    ]
}

fn many() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new(ONE, gcra(Limit::OPEN))),
        Box::new(Batch::new(Limit::OPEN)),
        Box::new(Library::three(THREE, Limit::OPEN)),
        Box::new(FloorTable::<1>::new(Limit::OPEN, KEYS)),
        Box::new(FloorTable::<3>::new(Limit::OPEN, KEYS)),
        Box::new(FloorBatch(FloorTable::new(Limit::OPEN, KEYS))),
        Box::new(Governor::new(Limit::OPEN)),
        Box::new(Throttlecrab::new(Limit::OPEN)),
        Box::new(Limitador::new(Limit::OPEN, KEYS)),
    ]
}

fn default_many() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new(ONE, default_quota(10_000, 60))),
        Box::new(FloorTable::<1>::new(Limit::OPEN, KEYS)),
        Box::new(Governor::new(Limit::OPEN)),
    ]
}

fn default_refused() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new(ONE, default_quota(1, 3_600))),
        Box::new(FloorHot::new(Limit::SHUT)),
        Box::new(Governor::new(Limit::SHUT)),
    ]
}

fn beyond() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new(ONE, default_quota(10_000_000, 1))),
        Box::new(Governor::new(Limit { count: 10_000_000, period_s: 1, burst: 10_000_000 })),
    ]
}

fn algorithms() -> Vec<Box<dyn Contender>> {
    let fixed = default_quota(10_000, 60).with_algorithm(Algorithm::FixedWindow);
    vec![
        Box::new(Library::new("gcra", gcra(Limit::OPEN))),
        Box::new(Library::new("token-bucket", paced(Limit::OPEN, Algorithm::TokenBucket))),
        Box::new(Library::new("default quota", default_quota(10_000, 60))),
        Box::new(Library::new("fixed-window", fixed.expect("the limit is in range"))),
    ]
}

fn gate() -> Vec<Box<dyn Contender>> {
    let whole = |name, limits| Whole::new(name, Limit::OPEN, limits);
    vec![
        Box::new(whole(SELECT_10, 10).select_only()),
        Box::new(whole(SELECT_1000, 1_000).select_only()),
        Box::new(whole(GATE_10, 10)),
        Box::new(whole(GATE_1000, 1_000)),
    ]
}
