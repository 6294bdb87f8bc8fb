//! What is measured.

use contenders::{
    Batch, Contender, FloorBatch, FloorHot, FloorTable, Governor, Kind, Limit, Limitador, Ours,
    Part, Throttlecrab, Traffic, Whole,
};

const KEYS: usize = 1_000_000;
const ONE: &str = "ours";
const THREE: &str = "ours, three limits";
const GOVERNOR: &str = "governor";
const SELECT_10: &str = "selection, 10 limits";
const SELECT_1000: &str = "selection, 1,000 limits";
const GATE_10: &str = "gate, 10 limits";
const GATE_1000: &str = "gate, 1,000 limits";

/// The names of all rows, `bytes` included.
pub(crate) const NAMES: &str = "hot refused uniform zipf algorithms gate parts bytes";

/// One comparison.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) traffic: Traffic,
    pub(crate) contenders: fn() -> Vec<Box<dyn Contender>>,
    /// Who the ratios are to.
    pub(crate) base: &'static str,
    pub(crate) targets: &'static [Target],
}

/// A contender's time is to be at most `ratio` of the base's.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) base: &'static str,
    pub(crate) ratio: f64,
}

const fn target(name: &'static str, ratio: f64, base: &'static str) -> Target {
    Target { name, base, ratio }
}

/// All of them, in the order of the page.
pub(crate) const ALL: [Row; 8] = [
    Row {
        name: "hot",
        title: "One hot key",
        traffic: Traffic::Hot,
        contenders: hot,
        base: GOVERNOR,
        targets: &[target(ONE, 0.6, GOVERNOR), target(THREE, 2.0, ONE)],
    },
    Row {
        name: "refused",
        title: "Flood on one refused key",
        traffic: Traffic::Hot,
        contenders: refused,
        base: GOVERNOR,
        targets: &[],
    },
    Row {
        name: "uniform",
        title: "1M keys, uniform",
        traffic: Traffic::Uniform(KEYS),
        contenders: many,
        base: GOVERNOR,
        targets: &[
            target(ONE, 0.25, GOVERNOR),
            target("ours, batch of 64", 0.12, GOVERNOR),
            target(THREE, 2.0, ONE),
        ],
    },
    Row {
        name: "zipf",
        title: "1M keys, zipf 0.99",
        traffic: Traffic::Zipf(KEYS),
        contenders: many,
        base: GOVERNOR,
        targets: &[target(ONE, 0.35, GOVERNOR), target(THREE, 2.0, ONE)],
    },
    Row {
        name: "algorithms",
        title: "Algorithms, one hot key",
        traffic: Traffic::Hot,
        contenders: algorithms,
        base: "gcra",
        targets: &[],
    },
    Row {
        name: "algorithms",
        title: "Algorithms, 1M keys, uniform",
        traffic: Traffic::Uniform(KEYS),
        contenders: algorithms,
        base: "gcra",
        targets: &[],
    },
    Row {
        name: "gate",
        title: "From facts to verdict, one hot key",
        traffic: Traffic::Hot,
        contenders: gate,
        base: SELECT_10,
        targets: &[target(SELECT_1000, 2.0, SELECT_10), target(GATE_1000, 2.0, GATE_10)],
    },
    Row {
        name: "parts",
        title: "Parts of a decision",
        traffic: Traffic::Hot,
        contenders: Part::all,
        base: "the counter (rdtsc)",
        targets: &[],
    },
];

fn hot() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Ours::<1>::new(ONE, Limit::OPEN, Kind::Gcra)),
        Box::new(Ours::<3>::new(THREE, Limit::OPEN, Kind::Gcra)),
        Box::new(FloorHot::new(Limit::OPEN)),
        Box::new(Governor::new(Limit::OPEN)),
        Box::new(Throttlecrab::new(Limit::OPEN)),
        Box::new(Limitador::new(Limit::OPEN, 1)),
    ]
}

fn refused() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Ours::<1>::new(ONE, Limit::SHUT, Kind::Gcra)),
        Box::new(Governor::new(Limit::SHUT)),
        Box::new(Throttlecrab::new(Limit::SHUT)),
        Box::new(Limitador::new(Limit::SHUT, 1)),
    ]
}

fn many() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Ours::<1>::new(ONE, Limit::OPEN, Kind::Gcra)),
        Box::new(Batch(Ours::new(ONE, Limit::OPEN, Kind::Gcra))),
        Box::new(Ours::<3>::new(THREE, Limit::OPEN, Kind::Gcra)),
        Box::new(FloorTable::new(Limit::OPEN, KEYS)),
        Box::new(FloorBatch(FloorTable::new(Limit::OPEN, KEYS))),
        Box::new(Governor::new(Limit::OPEN)),
        Box::new(Throttlecrab::new(Limit::OPEN)),
        Box::new(Limitador::new(Limit::OPEN, KEYS)),
    ]
}

fn algorithms() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Ours::<1>::new("gcra", Limit::OPEN, Kind::Gcra)),
        Box::new(Ours::<1>::new("token-bucket", Limit::OPEN, Kind::TokenBucket)),
        Box::new(Ours::<1>::new("sliding-window", Limit::OPEN, Kind::SlidingWindow)),
        Box::new(Ours::<1>::new("fixed-window", Limit::OPEN, Kind::FixedWindow)),
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
